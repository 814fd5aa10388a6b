package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// podset is members of a group that are alike, and how many. One without a name is all members of a group.
type podset struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// readSizes reads a size, such as "8" or "4-8", or one for each podset, such as "launcher=1,worker=4-8". The podsets have their
// least sizes; the number is the most members of the whole group.
func readSizes(text string) (sets []podset, most int, err error) {
	wrong := func(why string) error { return fmt.Errorf("%s is %q: %s", sizeNote, text, why) }
	elastic := false
	for _, part := range strings.Split(text, ",") {
		name, size, isNamed := strings.Cut(part, "=")
		if !isNamed {
			name, size = "", part
		}
		name = strings.TrimSpace(name)
		if isNamed == (name == "") || !isNamed && strings.Contains(text, ",") {
			return nil, 0, wrong("it is a number, or a number for each podset, as in launcher=1,worker=8")
		}
		if elastic {
			return nil, 0, wrong("only the last podset may have a range")
		}
		low, high, isRange := strings.Cut(size, "-")
		least, err := sizeIn(low)
		upTo := least
		if err == nil && isRange {
			upTo, err = sizeIn(high)
		}
		if err != nil {
			return nil, 0, wrong(err.Error())
		}
		if upTo < least {
			return nil, 0, wrong(fmt.Sprintf("%d is less than %d", upTo, least))
		}
		if slices.ContainsFunc(sets, func(set podset) bool { return set.Name == name }) {
			return nil, 0, wrong(fmt.Sprintf("podset %s is there twice", name))
		}
		sets, most, elastic = append(sets, podset{name, least}), most+upTo, isRange
	}
	if most > largestGroup {
		return nil, 0, wrong(fmt.Sprintf("a group has at most %d pods", largestGroup))
	}
	return sets, most, nil
}

func sizeIn(text string) (int, error) {
	size, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || size < 1 || size > largestGroup {
		return 0, fmt.Errorf("a size is a number from 1 to %d, not %q", largestGroup, text)
	}
	return size, nil
}

// podsetOf is the podset that a pod says it is of; empty if it says none.
func podsetOf(pod *v1.Pod) string {
	if name := pod.Annotations[podsetNote]; name != "" {
		return name
	}
	return pod.Labels[jobSetPodset]
}

// rankOf is the rank that a pod says it has in its podset of some size; false if it says none.
func rankOf(pod *v1.Pod, size int) (int, bool) {
	for _, text := range []string{
		pod.Annotations[completionNote], pod.Labels[completionNote], pod.Labels[podIndexLabel],
	} {
		rank, err := strconv.Atoi(text)
		if err != nil || rank < 0 {
			continue
		}
		if replicas, err := strconv.Atoi(pod.Labels[jobSetReplicas]); err == nil && replicas > 1 {
			job, err := strconv.Atoi(pod.Labels[jobSetJob])
			if err != nil || job < 0 || size%replicas != 0 {
				return 0, false
			}
			rank += job * (size / replicas)
		}
		return rank, true
	}
	return 0, false
}

// podsetsNow is the podsets of a group in rank order, with as many members of each as are to be placed now; or a sentence that says
// why the group waits.
func podsetsNow(key string, want asked, members []*v1.Pod) ([]podset, string) {
	there, order := map[string]int{}, map[string]int{}
	for _, pod := range members {
		if other := members[0]; pod.Annotations[sizeNote] != other.Annotations[sizeNote] {
			return nil, fmt.Sprintf("group %s contradicts itself: %s is %q on pod %s and %q on pod %s", key, sizeNote,
				other.Annotations[sizeNote], other.Name, pod.Annotations[sizeNote], pod.Name)
		}
		name := podsetOf(pod)
		there[name]++
		if index, err := strconv.Atoi(pod.Labels[jobSetOrder]); err == nil {
			if first, known := order[name]; !known || index < first {
				order[name] = index
			}
		}
		if len(want.podsets) > 0 && !slices.ContainsFunc(want.podsets, func(set podset) bool { return set.Name == name }) {
			return nil, fmt.Sprintf("group %s contradicts itself: pod %s is of podset %q, which %s %q does not name", key,
				pod.Name, name, sizeNote, pod.Annotations[sizeNote])
		}
	}
	if len(want.podsets) == 0 {
		if len(members) < want.size {
			return nil, fmt.Sprintf("group %s has %d of its %d pods", key, len(members), want.size)
		}
		if len(there) <= 1 {
			return []podset{{Size: min(len(members), want.most)}}, ""
		}
		names := slices.SortedFunc(maps.Keys(there), func(one, other string) int {
			if order[one] != order[other] {
				return order[one] - order[other]
			}
			return strings.Compare(one, other)
		})
		if len(members) > want.size {
			return nil, fmt.Sprintf("group %s has pods of podsets %s and may have %d or more: %s gives a size for each, as in %s=%d",
				key, strings.Join(names, ", "), want.size, sizeNote, names[0], there[names[0]])
		}
		var sets []podset
		for _, name := range names {
			sets = append(sets, podset{name, there[name]})
		}
		return sets, ""
	}
	sets := slices.Clone(want.podsets)
	for index, set := range sets {
		if there[set.Name] < set.Size {
			return nil, fmt.Sprintf("group %s has %d of its %d pods of podset %s", key, there[set.Name], set.Size, set.Name)
		}
		if index == len(sets)-1 {
			sets[index].Size = min(there[set.Name], set.Size+want.most-want.size)
		}
	}
	return sets, ""
}

// total is the members of all podsets.
func total(sets []podset) int {
	count := 0
	for _, set := range sets {
		count += set.Size
	}
	return count
}
