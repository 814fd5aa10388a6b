package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Annotations for the parts of a group that must lie together.
const (
	segmentNote   = "topolane.io/segment"
	sliceNote     = "kueue.x-k8s.io/podset-slice-required-topology"
	sliceSizeNote = "kueue.x-k8s.io/podset-slice-size"
)

// withSegments has for each policy the one that does the same and also keeps segments.
var withSegments = map[string]string{"isolated": "segments-isolated", "dedicated": "segments-dedicated", "first-fit": "segments"}

// readSegment fills in the parts in which a group must be placed. A policy from the configuration is replaced by one that
// keeps segments.
func (a *asked) readSegment(pod *v1.Pod, args *args) error {
	text, note := pod.Annotations[segmentNote], segmentNote
	slice := pod.Annotations[sliceNote]
	switch {
	case text != "" && slice != "":
		return fmt.Errorf("%s and %s contradict each other: give one", segmentNote, sliceNote)
	case text == "" && slice == "":
		if pod.Annotations[sliceSizeNote] != "" {
			return fmt.Errorf("%s needs %s", sliceSizeNote, sliceNote)
		}
		return nil
	case slice != "":
		text, note = pod.Annotations[sliceSizeNote], sliceSizeNote
	}
	size, isNumber := number(text)
	if !isNumber || size < 1 || size > a.size {
		return fmt.Errorf("%s is a number from 1 to the size of the group, %d, not %s", note, a.size, shown(text))
	}
	a.segment = size
	if pod.Annotations[policyNote] == "" && !keepsSegments(a.policy) {
		if other, has := withSegments[a.policy]; has && args.allows(other) {
			a.policy = other
		}
	}
	if !keepsSegments(a.policy) {
		return fmt.Errorf("policy %s keeps no segments, for which %s asks: name segments, segments-isolated, segments-dedicated, "+
			"slurm-block or kueue-tas", a.policy, note)
	}
	if slice != "" {
		return a.readSliceLevel(slice, args.TopologyLabels)
	}
	return nil
}

// readSliceLevel finds the level of Kueue's slices. Levels above the lowest one are used only under Kueue's rules.
func (a *asked) readSliceLevel(key string, keys []string) error {
	levels := switches(keys)
	if key == hostnameLabel {
		a.segmentLevel = "0"
	} else if place := slices.Index(levels, key); place >= 0 {
		a.segmentLevel = strconv.Itoa(len(levels) - place)
	} else {
		return fmt.Errorf("%s is %s; topologyLabels of this scheduler are %s", sliceNote, shown(key), strings.Join(keys, ", "))
	}
	if a.segmentLevel != "1" && !isKueues(a.policy) {
		return fmt.Errorf("%s is %s; policy %s keeps segments in the lowest level above nodes only: name kueue-tas", sliceNote,
			shown(key), a.policy)
	}
	return nil
}

func isKueues(policy string) bool { return strings.HasPrefix(policy, "kueue-tas") }

func keepsSegments(policy string) bool {
	return isKueues(policy) || policy == "slurm-block" || strings.HasPrefix(policy, "segments")
}
