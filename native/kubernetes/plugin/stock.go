package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// refusals counts the reasons for which the stock filters refuse nodes.
type refusals map[string]int

func (r refusals) add(status *fwk.Status) {
	if status.IsSuccess() {
		return
	}
	for _, reason := range status.Reasons() {
		r[reason]++
	}
}

// sentence returns the reasons in kube-scheduler's words; empty if no node is refused.
func (r refusals) sentence() string {
	if len(r) == 0 {
		return ""
	}
	var said []string
	for _, reason := range slices.Sorted(maps.Keys(r)) {
		said = append(said, fmt.Sprintf("%d %s", r[reason], reason))
	}
	return "; kube-scheduler's filters: " + strings.Join(said, ", ")
}

// stockEvents returns the events for which the stock plugins wait. After one of them, a group that the stock filters
// refused may have a place.
func (p *plugin) stockEvents(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	var events []fwk.ClusterEventWithHint
	var failures []error
	for _, plugin := range p.handle.EnqueueExtensions() {
		if plugin.Name() == Name {
			continue
		}
		found, err := plugin.EventsToRegister(ctx)
		failures = append(failures, err)
		for _, event := range found {
			if event.Event.Resource != fwk.Node {
				events = append(events, fwk.ClusterEventWithHint{Event: event.Event, QueueingHintFn: p.counted(event.QueueingHintFn)})
			}
		}
	}
	return events, errors.Join(failures...)
}

// counted wraps a hint so that refused groups are asked again after it. The plugin's own handlers of pods and nodes may
// see a change before kube-scheduler has it, and a group that is asked in between is refused for the old state. Hints
// come after the change. The queue calls them under its lock, so they must not take the plugin's lock.
func (p *plugin) counted(hint fwk.QueueingHintFn) fwk.QueueingHintFn {
	return func(logger klog.Logger, pod *v1.Pod, old, now any) (fwk.QueueingHint, error) {
		answer, err := fwk.Queue, error(nil)
		if hint != nil {
			answer, err = hint(logger, pod, old, now)
		}
		if err != nil || answer == fwk.Queue {
			p.generation.Add(1)
		}
		return answer, err
	}
}
