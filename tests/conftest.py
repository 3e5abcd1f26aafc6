"""Makes the helper modules beside this file importable from every test folder."""
