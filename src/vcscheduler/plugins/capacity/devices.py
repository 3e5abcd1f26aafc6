"""Quotas of devices that pods get through ResourceClaims (dynamic resource allocation, spec 04 §7.7).

A queue's capability may name ``deviceclass/<class>``, a number of devices, and ``<dim>.deviceclass/<class>``, an amount
that devices of the class are consumed by. A claim that several pods of a queue share is charged once. Only capability
is enforced; the same keys in deserved or guarantee merely make a queue one that keeps account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import IS_ALLOCATED
from vcscheduler.model.task import Task
from vcscheduler.objects import ResourceClaim
from vcscheduler.objects.quantity import parse_quantity, saturate, value
from vcscheduler.plugins.capacity.accounts import QueueAccount

_CLASS = "deviceclass/"
_DIMENSION = ".deviceclass/"

#: Name of what lacks when a quota of devices refuses a job.
EXCEEDED = "dra-resource-exceeded"


@dataclass(slots=True)
class Amount:
    """Devices of one class, and what is consumed of them by dimension."""

    count: int = 0
    consumed: dict[str, Fraction] = field(default_factory=dict)


Devices = dict[str, Amount]


def add(total: Devices, more: Devices, times: int = 1) -> None:
    for name, amount in more.items():
        mine = total.setdefault(name, Amount())
        mine.count = saturate(mine.count + saturate(amount.count * times))
        for d, q in amount.consumed.items():
            mine.consumed[d] = mine.consumed.get(d, Fraction()) + q * times


def take(total: Devices, less: Devices) -> None:
    """Never below 0; what ``total`` does not list stays unlisted."""
    for name, amount in less.items():
        mine = total.get(name)
        if mine is None:
            continue
        mine.count = max(mine.count - amount.count, 0)
        for d, q in amount.consumed.items():
            if d in mine.consumed:
                mine.consumed[d] = max(mine.consumed[d] - q, Fraction())


@dataclass(slots=True)
class _Account:
    """A queue that keeps account of devices. ``references``: by claim, how many tasks of the session use it."""

    capability: Devices
    allocated: Devices = field(default_factory=dict)
    inqueue: Devices = field(default_factory=dict)
    references: dict[str, int] = field(default_factory=dict)

    def allows(self, request: Devices, *, with_inqueue: bool, consumable: bool) -> bool:
        for name, asked in request.items():
            limit = self.capability.get(name)
            if limit is None:
                continue
            held = [self.allocated.get(name)]
            if with_inqueue:
                held.append(self.inqueue.get(name))
            known = [h for h in held if h is not None]
            if limit.count > 0 and saturate(sum(h.count for h in known) + asked.count) > limit.count:
                return False
            if not consumable:
                continue
            for d, q in asked.consumed.items():
                if d not in limit.consumed:
                    return False
                if sum((h.consumed.get(d, Fraction()) for h in known), q) > limit.consumed[d]:
                    return False
        return True


class DeviceQuotas:
    """The accounts of a session."""

    def __init__(
        self, accounts: Mapping[str, QueueAccount], claims: Mapping[str, ResourceClaim], *, consumable: bool
    ) -> None:
        self._claims = claims
        self._consumable = consumable
        self._tasks: dict[str, dict[str, Devices]] = {}
        self._accounts = {
            name: _Account(_devices(a.queue.object.spec.capability))
            for name, a in accounts.items()
            if _names_devices(a.queue)
        }

    def __bool__(self) -> bool:
        return bool(self._accounts)

    def open(self, jobs: Iterable[Job], accounts: Mapping[str, QueueAccount]) -> None:
        """Charge what is allocated. Queues above are charged for classes that they limit, and without noting the
        claims (Quirk, spec 04 §7.7)."""
        for job in jobs:
            own = self._accounts.get(job.queue)
            if own is None:
                continue
            above = [self._accounts[a.name] for a in accounts[job.queue].ancestors if a.name in self._accounts]
            for task in job.tasks.values():
                if not IS_ALLOCATED[task.status]:
                    continue
                for key, devices in self.claims_of(task).items():
                    if not own.references.get(key):
                        add(own.allocated, devices)
                        for account in above:
                            limited = {n: d for n, d in devices.items() if n in account.capability}
                            add(account.allocated, limited)
                    own.references[key] = own.references.get(key, 0) + 1

    # --- what tasks and jobs ask for --------------------------------------------------------------------------

    def claims_of(self, task: Task) -> dict[str, Devices]:
        """What each claim of the task asks for; claims that ask for nothing countable are left out."""
        pod = task.pod
        if not pod.spec.resource_claims:
            return {}
        found = self._tasks.get(task.uid)
        if found is None:
            found = self._tasks[task.uid] = {}
            made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
            for use in pod.spec.resource_claims:
                name = use.resource_claim_name or made.get(use.name)
                claim = self._claims.get(f"{task.namespace}/{name}") if name else None
                if claim is not None and (devices := _requested(claim, consumable=self._consumable)):
                    found[claim.key] = devices
        return found

    def minimum(self, job: Job) -> Devices:
        """What the job's minimum asks for; a claim that its tasks share counts for each of them."""
        asking = sorted((t for t in job.tasks.values() if self.claims_of(t)), key=lambda t: t.sort_key)
        total: Devices = {}
        if not job.task_min_available:
            for task in asking[: max(job.min_available, 0)]:
                add(total, self._request(task))
            return total
        for role, least in job.task_min_available.items():
            first = next((t for t in asking if t.role == role), None)
            if least > 0 and first is not None:
                add(total, self._request(first), least)
        return total

    def _request(self, task: Task) -> Devices:
        total: Devices = {}
        for devices in self.claims_of(task).values():
            add(total, devices)
        return total

    # --- checks -----------------------------------------------------------------------------------------------

    def allows(self, queue: QueueAccount, task: Task) -> bool:
        """Whether claims of the task that the queue is not charged for already stay within its capability."""
        account = self._accounts.get(queue.name)
        if account is None:
            return True
        request: Devices = {}
        for key, devices in self.claims_of(task).items():
            if not account.references.get(key):
                add(request, devices)
        return account.allows(request, with_inqueue=False, consumable=self._consumable)

    def admits(self, queue: QueueAccount, minimum: Devices) -> bool:
        account = self._accounts.get(queue.name)
        return account is None or account.allows(minimum, with_inqueue=True, consumable=self._consumable)

    # --- changes ----------------------------------------------------------------------------------------------

    def admitted(self, chain: Iterable[QueueAccount], job: Job) -> None:
        """The job is Inqueue now: its minimum counts in its queue, if that keeps account, and above."""
        if job.queue in self._accounts and (minimum := self.minimum(job)):
            for queue in chain:
                account = self._accounts.get(queue.name)
                if account is not None:
                    add(account.inqueue, minimum)

    def changed(self, chain: Iterable[QueueAccount], tasks: Iterable[Task], times: int) -> None:
        """Tasks were allocated (or, negative, taken back)."""
        accounts = [self._accounts[q.name] for q in chain if q.name in self._accounts]
        for task in tasks:
            for key, devices in self.claims_of(task).items():
                for account in accounts:
                    used = account.references.get(key, 0)
                    if times > 0:
                        if not used:
                            add(account.allocated, devices)
                        account.references[key] = used + 1
                    elif used > 1:
                        account.references[key] = used - 1
                    else:
                        take(account.allocated, devices)
                        account.references.pop(key, None)


def _names_devices(queue: Queue) -> bool:
    spec = queue.object.spec
    return any(
        name.startswith(_CLASS) or _DIMENSION in name
        for listed in (spec.capability, spec.deserved, spec.guarantee.resource)
        for name in listed
    )


def _devices(listed: Mapping[str, str | int | float]) -> Devices:
    devices: Devices = {}
    for name, quantity in listed.items():
        if name.startswith(_CLASS):
            devices.setdefault(name.removeprefix(_CLASS), Amount()).count = value(quantity)
        elif _DIMENSION in name:
            dimension, _, device_class = name.partition(_DIMENSION)
            devices.setdefault(device_class, Amount()).consumed[dimension] = parse_quantity(quantity)
    return devices


def _requested(claim: ResourceClaim, *, consumable: bool) -> Devices:
    """Requests for exactly some devices; alternatives and requests for all devices are not counted."""
    total: Devices = {}
    for request in claim.spec.devices.requests:
        exactly = request.exactly
        if exactly is None or request.first_available or exactly.allocation_mode == "All":
            continue
        if not exactly.device_class_name:
            continue
        count = exactly.count or 1
        amount = Amount(count)
        if consumable and exactly.capacity is not None:
            amount.consumed = {d: parse_quantity(q) * count for d, q in exactly.capacity.requests.items()}
        add(total, {exactly.device_class_name: amount})
    return total
