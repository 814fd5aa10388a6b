package plugin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"topolane/scheduler/engine"
)

// What to do if the policy does not choose.
const (
	wait  = "Wait"
	stock = "Stock"
)

// args is the pluginConfig of the plugin in KubeSchedulerConfiguration.
type args struct {
	// Policy is the policy of groups that name none.
	Policy string `json:"policy"`
	// GroupsMay lists the policies that a group may name; empty: any.
	GroupsMay []string `json:"groupsMay"`
	Seed      uint64   `json:"seed"`
	// TopologyLabels are keys of node labels, from the top down. Without them and without a file, topograph's labels are
	// used.
	TopologyLabels []string `json:"topologyLabels"`
	// KueueTopology names a Topology of Kueue, whose levels become the TopologyLabels.
	KueueTopology string `json:"kueueTopology"`
	// MachineFile is a file that the engine reads. With TopologyLabels it is joined with the labels, otherwise it replaces
	// them.
	MachineFile string `json:"machineFile"`
	// WhenRefused is Wait or Stock. It applies to groups that do not ask for a promise themselves.
	WhenRefused string `json:"whenRefused"`
	// WhenUnable is Wait or Stock, for the case that the engine fails, is slow or has no machine. It applies to groups that
	// are promised something only by the configuration.
	WhenUnable string `json:"whenUnable"`
	// GroupTimeoutSeconds is how long members with nodes wait for the others.
	GroupTimeoutSeconds int `json:"groupTimeoutSeconds"`
	// CallTimeMilliseconds is the most processor time that a call of the engine may take.
	CallTimeMilliseconds int `json:"callTimeMilliseconds"`
	// PlacementKey is NAMESPACE/NAME of the Secret with the key that signs placements; empty: one in the scheduler's own
	// namespace.
	PlacementKey string `json:"placementKey"`

	machineText []byte
}

func readArgs(given runtime.Object) (*args, error) {
	read := &args{
		Policy: "isolated", WhenRefused: wait, WhenUnable: wait, GroupTimeoutSeconds: 60, CallTimeMilliseconds: 200,
	}
	if err := frameworkruntime.DecodeInto(given, read); err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	for member, value := range map[string]string{"whenRefused": read.WhenRefused, "whenUnable": read.WhenUnable} {
		if value != wait && value != stock {
			return nil, fmt.Errorf("args of %s: %s is %s or %s, not %q", Name, member, wait, stock, value)
		}
	}
	if read.GroupTimeoutSeconds < 1 || read.CallTimeMilliseconds < 1 {
		return nil, fmt.Errorf("args of %s: groupTimeoutSeconds and callTimeMilliseconds are at least 1", Name)
	}
	if space, name, _ := strings.Cut(read.PlacementKey, "/"); read.PlacementKey != "" && (space == "" || name == "") {
		return nil, fmt.Errorf("args of %s: placementKey is NAMESPACE/NAME of a Secret, not %q", Name, read.PlacementKey)
	}
	if _, err := engine.NewPolicy(read.Policy, read.Seed); err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	if read.KueueTopology != "" && len(read.TopologyLabels) > 0 {
		return nil, fmt.Errorf("args of %s: give topologyLabels or kueueTopology, not both", Name)
	}
	if read.MachineFile != "" {
		text, err := os.ReadFile(read.MachineFile)
		if err != nil {
			return nil, fmt.Errorf("args of %s: machineFile: %w", Name, err)
		}
		if _, err := engine.ReadMachine(read.MachineFile, text); err != nil {
			return nil, fmt.Errorf("args of %s: machineFile: %w", Name, err)
		}
		read.machineText = text
	}
	return read, nil
}

// allows reports whether a group may name a policy.
func (a *args) allows(policy string) bool {
	return len(a.GroupsMay) == 0 || slices.Contains(a.GroupsMay, policy)
}

func (a *args) timeout() time.Duration { return time.Duration(a.GroupTimeoutSeconds) * time.Second }
