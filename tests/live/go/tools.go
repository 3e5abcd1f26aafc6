//go:build tools

// Package tools keeps the modules of the control plane's programs in go.mod; tools.py builds the programs.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
