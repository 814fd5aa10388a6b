package plugin

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// secrets is a namespace of an API server. before is what another scheduler does between reading and writing.
type secrets struct {
	typedcorev1.SecretInterface
	there  map[string]*v1.Secret
	before func()
}

var secretKind = schema.GroupResource{Resource: "secrets"}

func (s *secrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Secret, error) {
	if found := s.there[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(secretKind, name)
}

func (s *secrets) Create(_ context.Context, made *v1.Secret, _ metav1.CreateOptions) (*v1.Secret, error) {
	if s.before != nil {
		s.before()
	}
	if s.there[made.Name] != nil {
		return nil, apierrors.NewAlreadyExists(secretKind, made.Name)
	}
	s.there[made.Name] = made
	return made, nil
}

// The first scheduler makes the key, and all others use it, including one that looked before it existed. A deleted Secret
// is created again with the same key. A Secret without a key is an error that says what to do.
func TestAllSchedulersHaveOneKey(t *testing.T) {
	ctx, space := context.Background(), &secrets{there: map[string]*v1.Secret{}}
	first, err := keyIn(ctx, space, usualKeyName, nil)
	if err != nil || len(first) != keyBytes || !*space.there[usualKeyName].Immutable {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	again, err := keyIn(ctx, space, usualKeyName, nil)
	if err != nil || string(again) != string(first) {
		t.Errorf("another key, %v", err)
	}
	delete(space.there, usualKeyName)
	if kept, err := keyIn(ctx, space, usualKeyName, first); err != nil || string(kept) != string(first) {
		t.Errorf("another key, %v", err)
	}
	late := &secrets{there: map[string]*v1.Secret{}}
	late.before = func() { late.there[usualKeyName] = space.there[usualKeyName] }
	if theirs, err := keyIn(ctx, late, usualKeyName, nil); err != nil || string(theirs) != string(first) {
		t.Errorf("not the key of the one that was faster, %v", err)
	}
	space.there[usualKeyName].Data[keyMember] = []byte("short")
	if _, err := keyIn(ctx, space, usualKeyName, nil); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a short key: %v", err)
	}
}
