package plugin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
)

// Any user who may change a pod may change its annotations. So the scheduler signs its annotations with a key that only
// it may read, and ignores what it has not signed. python/topolane/kubernetes/proofs.py verifies in the same way;
// tests/kubernetes/proof_cases.json tests both.
const (
	proofNote = "topolane.io/placement-proof"
	// proofStarts begins what is signed. Earlier releases read no link_use, so to them a record of this one must prove nothing.
	proofStarts = "topolane.io/placement/v2"
	// earlierStarts begins what earlier releases signed.
	earlierStarts = "topolane.io/placement/v1"
	keyMember     = "key"
	keyBytes      = 32
	// longestNote is the most bytes of all annotations of a pod.
	longestNote = 256 * 1024
	// longestProof is the most bytes of a proof: a group and a checksum.
	longestProof = 4 * longestName
	usualKeyName = "topolane-placement-key"
	// ownNamespace is the file with the namespace of the pod in which a program runs.
	ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	keyPatience  = 5 * time.Second
	keyInterval  = time.Minute
)

// signingKey signs placements.
type signingKey []byte

// seal returns the checksum of a placement for one pod of a group. starts is proofStarts or earlierStarts.
func (k signingKey) seal(starts string, group groupKey, pod types.UID, text string) string {
	sum := hmac.New(sha256.New, k)
	for _, part := range []string{starts, string(group), string(pod)} {
		sum.Write(append([]byte(part), 0))
	}
	sum.Write([]byte(text))
	return hex.EncodeToString(sum.Sum(nil))
}

// proof returns the annotation that proves a placement.
func (k signingKey) proof(group groupKey, pod types.UID, text string) string {
	return string(group) + " " + k.seal(proofStarts, group, pod, text)
}

// proved returns the group for which the scheduler bound a pod, and the text that it wrote then; false if the present
// text is not the scheduler's.
func (k signingKey) proved(pod *v1.Pod) (groupKey, string, bool) {
	text, proof := pod.Annotations[placementNote], pod.Annotations[proofNote]
	if len(k) == 0 || text == "" || proof == "" || len(text) > longestNote || len(proof) > longestProof {
		return "", "", false
	}
	group, seal, _ := strings.Cut(proof, " ")
	if !strings.HasPrefix(group, pod.Namespace+"/") {
		return "", "", false
	}
	for _, starts := range []string{proofStarts, earlierStarts} {
		if hmac.Equal([]byte(seal), []byte(k.seal(starts, groupKey(group), pod.UID, text))) {
			return groupKey(group), text, true
		}
	}
	return "", "", false
}

// groupOf returns the group of a pod. A running pod stays in the group for which it was bound, even if its labels change.
func (p *plugin) groupOf(pod *v1.Pod) groupKey {
	if pod.Spec.NodeName == "" {
		return groupOf(pod)
	}
	if known, is := p.boundFor.Load(pod.UID); is {
		key, _ := known.(groupKey)
		return key
	}
	if key, _, is := p.key.proved(pod); is {
		p.boundFor.Store(pod.UID, key)
		return key
	}
	return groupOf(pod)
}

// placementOf returns the placement that the scheduler wrote on a pod when it bound it; nil if the pod has none.
func (p *plugin) placementOf(pod *v1.Pod) *placement {
	_, text, isOurs := p.key.proved(pod)
	var read struct {
		placement
		Isolated bool `json:"isolated"` // what earlier releases wrote in place of link_use
	}
	if !isOurs || json.Unmarshal([]byte(text), &read) != nil || !read.isSound() || read.Nodes[read.Rank] != pod.Spec.NodeName {
		return nil
	}
	switch {
	case read.LinkUse != "":
	case read.Policy == stockPolicy || read.Policy == unknownPolicy:
		read.LinkUse = unknownLinks
	case read.Isolated:
		read.LinkUse = isolatedLinks
	default:
		read.LinkUse = sharedLinks
	}
	return &read.placement
}

// isSound reports whether the parts of a placement are consistent.
func (p *placement) isSound() bool {
	members := len(p.Nodes)
	if len(p.Podsets) > 0 {
		members = 0
		for _, set := range p.Podsets {
			if set.Size < 1 || set.Size > len(p.Nodes) {
				return false
			}
			members += set.Size
		}
	}
	return members == len(p.Nodes) && p.Rank >= 0 && p.Rank < members && p.Revision >= 0 && p.Share > 0 && p.Share <= 1
}

// keyPlace returns the namespace and the name of the Secret with the key.
func (a *args) keyPlace() (space, name string) {
	if space, name, isWhole := strings.Cut(a.PlacementKey, "/"); isWhole {
		return space, name
	}
	space = metav1.NamespaceSystem
	if text, err := os.ReadFile(ownNamespace); err == nil && len(text) > 0 {
		space = strings.TrimSpace(string(text))
	}
	return space, usualKeyName
}

// readKey reads the key, or makes one if there is none. It waits for an API server that does not answer, and fails if
// waiting would not help.
func (p *plugin) readKey(ctx context.Context) error {
	space, name := p.args.keyPlace()
	secrets := p.handle.ClientSet().CoreV1().Secrets(space)
	for {
		key, err := keyIn(ctx, secrets, name, nil)
		if err == nil {
			p.key = key
			go p.keepKey(ctx, secrets, name)
			return nil
		}
		err = fmt.Errorf("the key that proves placements, Secret %s/%s: %w", space, name, err)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.ReasonForError(err) == reasonNoKey {
			return err
		}
		p.logger.Error(err, "The scheduler waits for the API server")
		select {
		case <-ctx.Done():
			return err
		case <-time.After(keyPatience):
		}
	}
}

const reasonNoKey metav1.StatusReason = "NoKey"

// keyIn returns the key in a Secret. If the Secret does not exist, it is created with the given key, or with a new key if
// that is nil.
func keyIn(ctx context.Context, secrets typedcorev1.SecretInterface, name string, key signingKey) (signingKey, error) {
	found, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if key == nil {
			key = make(signingKey, keyBytes)
			if _, err := rand.Read(key); err != nil {
				return nil, err
			}
		}
		isFinal := true
		found, err = secrets.Create(ctx, &v1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Immutable: &isFinal, Data: map[string][]byte{keyMember: key},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			// Another scheduler was faster, and all must use the same key.
			found, err = secrets.Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, err
	}
	if len(found.Data[keyMember]) < keyBytes {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reasonNoKey, Message: fmt.Sprintf(
			"it has less than %d bytes under %q; delete it, and the scheduler makes another", keyBytes, keyMember)}}
	}
	return found.Data[keyMember], nil
}

// keepKey writes the key again if its Secret was deleted, because a scheduler that takes over needs it.
func (p *plugin) keepKey(ctx context.Context, secrets typedcorev1.SecretInterface, name string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(keyInterval):
		}
		there, err := keyIn(ctx, secrets, name, p.key)
		if err != nil {
			p.logger.Error(err, "The key that proves placements cannot be read again", "secret", klog.KRef("", name))
		} else if !hmac.Equal(there, p.key) {
			p.logger.Error(nil, "The Secret has another key than this scheduler signs with: restart all schedulers", "secret", klog.KRef("", name))
		}
	}
}
