package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// server is an API server that records whether the plugin holds its lock during a request.
type server struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
	plugin         *plugin
	asked, blocked int
}

func (s *server) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}
func (s *server) Namespace(string) dynamic.ResourceInterface { return s }

func (s *server) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	s.asked++
	if s.plugin.lock.TryLock() {
		s.plugin.lock.Unlock()
	} else {
		s.blocked++
	}
	return nil, errors.New("there is none")
}

// The API server may need seconds to answer how large a group is. The scheduler asks only once, and without a lock.
func TestTheAPIServerIsAskedWithoutTheLock(t *testing.T) {
	s := started(t)
	there := &server{plugin: s.plugin}
	s.client = there
	pod := podWith(map[string]string{podGroupLabel: "g"}, nil)
	ahead := s.readAhead(context.Background(), pod)
	if there.asked != 1 || there.blocked > 0 || ahead == nil || ahead.err == nil {
		t.Fatalf("asked %d times, %d under the lock", there.asked, there.blocked)
	}
	s.guarded("test", "", func() {
		if _, err := s.read(context.Background(), pod, ahead); err == nil || !strings.Contains(err.Error(), "there is none") {
			t.Errorf("%v", err)
		}
	})
	if there.asked != 1 {
		t.Errorf("asked %d times", there.asked)
	}
}

// A request of a user that is longer than any valid one is refused in a short sentence.
func TestLongWordsAreRefused(t *testing.T) {
	s := started(t)
	long := strings.Repeat("1", 250*1024)
	for _, note := range []string{sizeNote, policyNote, bandwidthNote, segmentNote, requiredNote, layersNote} {
		notes := map[string]string{sizeNote: "2"}
		notes[note] = long
		_, err := readAsked(context.Background(), podWith(map[string]string{podGroupLabel: "g"}, notes), s.args, nil)
		if err == nil || len(err.Error()) > 400 {
			t.Errorf("%s: %.400v", note, err)
		}
	}
}
