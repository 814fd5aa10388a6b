//go:build tools

package main

// Kueue's controller, so that go.mod pins what it needs: `make bench-kubernetes` builds it.
import _ "sigs.k8s.io/kueue/cmd/kueue"
