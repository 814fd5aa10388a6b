//go:build tools

// Package tools names the commands of the control plane that the tests start, so that go.mod pins what they need.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
