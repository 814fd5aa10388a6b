package plugin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// podset is a number of equal members of a group. A podset without a name has all members of its group.
type podset struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// readSizes reads a size, such as "8" or "4-8", or one for each podset, such as "launcher=1,worker=4-8". It returns the
// podsets with their least sizes, and the most members of the whole group.
func readSizes(text string) (sets []podset, most int, err error) {
	wrong := func(why string) error { return fmt.Errorf("%s is %s: %s", sizeNote, shown(text), why) }
	if len(text) > longestSizes {
		return nil, 0, wrong(fmt.Sprintf("it has at most %d bytes", longestSizes))
	}
	parts := strings.Split(text, ",")
	if len(parts) > mostPodsets {
		return nil, 0, wrong(fmt.Sprintf("a group has at most %d podsets", mostPodsets))
	}
	elastic, known := false, map[string]bool{}
	for _, part := range parts {
		name, size, isNamed := strings.Cut(part, "=")
		if !isNamed {
			name, size = "", part
		}
		name = strings.TrimSpace(name)
		if isNamed == (name == "") || !isNamed && len(parts) > 1 {
			return nil, 0, wrong("it is a number, or a number for each podset, as in launcher=1,worker=8")
		}
		if elastic {
			return nil, 0, wrong("only the last podset may have a range")
		}
		if len(name) > longestWord {
			return nil, 0, wrong(fmt.Sprintf("the name of a podset has at most %d bytes", longestWord))
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
		if known[name] {
			return nil, 0, wrong(fmt.Sprintf("podset %s is there twice", name))
		}
		sets, most, elastic, known[name] = append(sets, podset{name, least}), most+upTo, isRange, true
	}
	if most > largestGroup {
		return nil, 0, wrong(fmt.Sprintf("a group has at most %d pods", largestGroup))
	}
	return sets, most, nil
}

func sizeIn(text string) (int, error) {
	size, isNumber := number(strings.TrimSpace(text))
	if !isNumber || size < 1 || size > largestGroup {
		return 0, fmt.Errorf("a size is a number from 1 to %d, not %s", largestGroup, shown(text))
	}
	return size, nil
}

// podsetOf returns the podset that a pod names; empty if it names none.
func podsetOf(pod *v1.Pod) string {
	// Pods of an MPIJob have a role only. The names of roles put masters and launchers before workers.
	return cmp.Or(pod.Annotations[podsetNote], pod.Labels[jobSetPodset], pod.Labels[kubeflowType], pod.Labels[kubeflowRole])
}

// rankOf returns the rank that a pod states within its podset of some size; false if it states none in the podset's
// range.
func rankOf(pod *v1.Pod, size int) (int, bool) {
	rank, says := rankIn(pod, size)
	return rank, says && rank >= 0 && rank < size
}

func rankIn(pod *v1.Pod, size int) (int, bool) {
	if pod.Labels[lwsGroupKey] != "" {
		return rankOfWorker(pod, size)
	}
	for _, text := range []string{
		pod.Annotations[completionNote], pod.Labels[completionNote], pod.Labels[podIndexLabel], pod.Labels[kubeflowIndex],
	} {
		rank, isNumber := number(text)
		if !isNumber {
			continue
		}
		if replicas, isNumber := number(pod.Labels[jobSetReplicas]); isNumber && replicas > 1 {
			job, isNumber := number(pod.Labels[jobSetJob])
			if !isNumber || job >= replicas || size%replicas != 0 {
				return 0, false
			}
			rank += job * (size / replicas)
		}
		return rank, true
	}
	return 0, false
}

// rankOfWorker returns the rank of a LeaderWorkerSet's pod: the leader is worker 0. In a podset without the leader,
// worker 1 has rank 0.
func rankOfWorker(pod *v1.Pod, size int) (int, bool) {
	worker, isNumber := number(pod.Labels[lwsWorker])
	if whole, isKnown := number(pod.Annotations[lwsSizeNote]); isKnown && worker > 0 && whole > size {
		worker -= whole - size
	}
	return worker, isNumber
}

// podsetsNow returns the podsets of a group in rank order, with the numbers of members to place now; or a sentence that
// says why the group waits.
func podsetsNow(key groupKey, want asked, members []*v1.Pod) ([]podset, string) {
	there, order := map[string]int{}, map[string]int{}
	for _, pod := range members {
		if other := members[0]; pod.Annotations[sizeNote] != other.Annotations[sizeNote] {
			return nil, fmt.Sprintf("group %s contradicts itself: %s is %s on pod %s and %s on pod %s", key, sizeNote,
				shown(other.Annotations[sizeNote]), other.Name, shown(pod.Annotations[sizeNote]), pod.Name)
		}
		name := podsetOf(pod)
		if there[name]++; len(there) > mostPodsets || len(name) > longestWord {
			return nil, fmt.Sprintf("group %s has podset %s: a group has at most %d, with names of at most %d bytes", key, shown(name),
				mostPodsets, longestWord)
		}
		if index, isNumber := number(pod.Labels[jobSetOrder]); isNumber {
			if first, known := order[name]; !known || index < first {
				order[name] = index
			}
		}
		if len(want.podsets) > 0 && !slices.ContainsFunc(want.podsets, func(set podset) bool { return set.Name == name }) {
			return nil, fmt.Sprintf("group %s contradicts itself: pod %s is of podset %s, which %s %s does not name", key,
				pod.Name, shown(name), sizeNote, shown(pod.Annotations[sizeNote]))
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

// total returns the number of members of all podsets.
func total(sets []podset) int {
	count := 0
	for _, set := range sets {
		count += set.Size
	}
	return count
}
