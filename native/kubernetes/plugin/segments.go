package plugin

import (
	"encoding/json"
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
	// layersNote has slices of several levels as JSON, the largest first. Kueue has the level and the size in one entry.
	layersNote   = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
	ofKueuesPods = "kueue.x-k8s.io/podset-"
)

// heeded are the annotations of Kueue's podsets that the plugin obeys.
var heeded = []string{requiredNote, preferredNote, unconstrained, sliceNote, sliceSizeNote, layersNote}

// withSegments has for each policy the one that does the same and also keeps segments.
var withSegments = map[string]string{"isolated": "segments-isolated", "dedicated": "segments-dedicated", "first-fit": "segments"}

// readSegment fills in the parts in which a group must be placed. A policy from the configuration is replaced by one that
// keeps segments.
func (a *asked) readSegment(pod *v1.Pod, args *args) error {
	text, note := pod.Annotations[segmentNote], segmentNote
	slice, levelNote := pod.Annotations[sliceNote], sliceNote
	layers := pod.Annotations[layersNote]
	switch {
	case text != "" && slice != "":
		return fmt.Errorf("%s and %s contradict each other: give one", segmentNote, sliceNote)
	case layers != "" && text+slice+pod.Annotations[sliceSizeNote] != "":
		return fmt.Errorf("%s and other parts of a group contradict each other: give one", layersNote)
	case layers != "":
		var err error
		if slice, text, err = readLayer(layers); err != nil {
			return err
		}
		note, levelNote = layersNote, layersNote
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
		return a.readSliceLevel(levelNote, slice, args.TopologyLabels)
	}
	return nil
}

// readSliceLevel finds the level of Kueue's slices. Levels above the lowest one are used only under Kueue's rules.
func (a *asked) readSliceLevel(note, key string, keys []string) error {
	levels := switches(keys)
	if key == hostnameLabel {
		a.segmentLevel = "0"
	} else if place := slices.Index(levels, key); place >= 0 {
		a.segmentLevel = strconv.Itoa(len(levels) - place)
	} else {
		return fmt.Errorf("%s is %s; topologyLabels of this scheduler are %s", note, shown(key), strings.Join(keys, ", "))
	}
	if a.segmentLevel != "1" && !isKueues(a.policy) {
		return fmt.Errorf("%s is %s; policy %s keeps segments in the lowest level above nodes only: name kueue-tas", note,
			shown(key), a.policy)
	}
	return nil
}

// readLayer returns the level and the size of Kueue's slices from the annotation that may have several layers. The engine
// keeps one.
func readLayer(text string) (level, size string, err error) {
	var layers []struct {
		Topology string          `json:"topology"`
		Size     json.RawMessage `json:"size"`
	}
	// Limited first, because a user may write anything.
	if len(text) > longestLayers || json.Unmarshal([]byte(text), &layers) != nil || len(layers) == 0 {
		return "", "", fmt.Errorf("%s is no list of topology and size: %s", layersNote, shown(text))
	}
	if len(layers) > 1 {
		return "", "", fmt.Errorf("%s has %d layers; this scheduler keeps slices of one", layersNote, len(layers))
	}
	size = strings.Trim(string(layers[0].Size), `"`)
	if layers[0].Topology == "" || size == "" {
		return "", "", fmt.Errorf("%s needs a topology and a size: %s", layersNote, shown(text))
	}
	return layers[0].Topology, size, nil
}

// unheeded returns the annotations of Kueue's podsets that the plugin does not obey, sorted.
func unheeded(pod *v1.Pod) []string {
	var found []string
	for note := range pod.Annotations {
		if strings.HasPrefix(note, ofKueuesPods) && !slices.Contains(heeded, note) {
			found = append(found, note)
		}
	}
	slices.Sort(found)
	return found
}

func isKueues(policy string) bool { return strings.HasPrefix(policy, "kueue-tas") }

func keepsSegments(policy string) bool {
	return isKueues(policy) || policy == "slurm-block" || strings.HasPrefix(policy, "segments")
}
