package api

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/idempotency"
)

// replayedHeader marks a response as the replay of an earlier request's response.
const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotent-Replayed"
)

func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	valid := len(values) == 1 && key != "" && len(key) <= idempotency.MaxKey
	for i := range len(key) {
		valid = valid && key[i] >= ' ' && key[i] <= '~'
	}
	if !valid {
		wrong := valueProblem(idempotencyHeader, key,
			fmt.Sprintf("Send one key of 1 to %d printable ASCII characters.", idempotency.MaxKey))
		wrong.Location[0] = "header"
		return "", problems{wrong}
	}
	return key, nil
}

type creation struct {
	// asked identifies the content of the request. Its JSON must be the same in every retry.
	asked    any
	resource string
	made     idempotency.Made
	// create returns the response to store for retries, or nil if the resource's id is enough.
	create func(ctx context.Context) (answer []byte, err error)
}

// createTime includes waiting for another request with the same key.
const createTime = 30 * time.Second

// once creates a resource only for an account's first request with an Idempotency-Key. It returns nil if this request
// created the resource, otherwise the record of the earlier request. The creation continues if the client
// disconnects, because a partial resource could not be cleaned up.
//
// Errors: as for what.create; problems with the key; fault.Conflict if the key was used for a different request or is
// in use.
func (s *service) once(w http.ResponseWriter, r *http.Request, c call, what creation) (*idempotency.Record, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), createTime)
	defer cancel()
	if key == "" || s.Idempotency == nil {
		_, err := what.create(ctx)
		return nil, err
	}
	// A model's aliases count as the same model. r.Pattern does not depend on the deployment.
	asked := []any{r.Pattern, what.asked}
	if c.model != nil {
		asked = append(asked, c.model.ID)
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("encode the fingerprint of a request: %w", err)
	}
	sum := sha256.Sum256(text)
	claim := idempotency.Claim{
		Account: c.who.Account(), Key: keyOf(c, key), Fingerprint: hex.EncodeToString(sum[:]), Resource: what.resource,
	}
	earlier, err := s.Idempotency.Begin(ctx, claim, what.made)
	if err != nil {
		return nil, err
	}
	if earlier != nil {
		w.Header().Set(replayedHeader, "true")
		return earlier, nil
	}
	creating, stop := context.WithTimeout(ctx, idempotency.MakeTime)
	defer stop()
	answer, err := what.create(creating)
	switch {
	case err == nil:
		err := s.Idempotency.Settle(ctx, claim, answer)
		if err != nil {
			// The resource exists, so the request succeeds. A retry finds the resource with the function made.
			s.log(r, err)
		}
		return nil, nil
	case rejected(err):
		if err := s.Idempotency.Withdraw(ctx, claim); err != nil {
			s.log(r, err) // the key becomes usable again when the claim expires
		}
	}
	return nil, err
}

// onceSecret is like once, but create returns a response that contains a secret. A retry gets the same secret. The
// stored response can be read only with the request's API key.
func (s *service) onceSecret(
	w http.ResponseWriter, r *http.Request, c call, asked any, create func(context.Context) (any, error),
) (answer []byte, err error) {
	earlier, err := s.once(w, r, c, creation{
		asked: asked, resource: rand.Text(),
		// If no response was stored, no client has the secret, so the resource is useless.
		made: func(context.Context, string) ([]byte, bool, error) { return nil, false, nil },
		create: func(ctx context.Context) ([]byte, error) {
			body, err := create(ctx)
			if err != nil {
				return nil, err
			}
			if answer, err = encodeJSON(body); err != nil || !s.repeatable(r) {
				return nil, err
			}
			return seal(r, answer)
		},
	})
	if err != nil || earlier == nil {
		return answer, err
	}
	if answer, err = unseal(r, earlier.Response); err != nil {
		w.Header().Del(replayedHeader)
	}
	return answer, err
}

// keyOf separates claims made with tokens from claims made with permanent keys. All of an account's tokens share
// their claims. This keeps a token from using up or reading a server's Idempotency-Key.
func keyOf(c call, key string) string {
	if c.copy > 0 {
		key += "\n" + strconv.Itoa(c.copy) // header values contain no line breaks
	}
	if c.who.Token != nil {
		return "token/" + key
	}
	return "key/" + key
}

// unlessRepeated returns nil instead of a capacity error if the request repeats an accepted request.
func (s *service) unlessRepeated(r *http.Request, c call, full error) error {
	if !fault.Is(full, fault.Limited) && !fault.Is(full, fault.Unavailable) {
		return full
	}
	if s.earlier(r, c) != "" {
		return nil
	}
	return full
}

// earlier returns the resource of an earlier request with the same Idempotency-Key, or "".
func (s *service) earlier(r *http.Request, c call) string {
	if !s.repeatable(r) {
		return ""
	}
	resource, err := s.Idempotency.Resource(r.Context(), c.who.Account(), keyOf(c, r.Header.Get(idempotencyHeader)))
	if err != nil {
		s.log(r, err) // the client may retry
	}
	return resource
}

func (s *service) repeatable(r *http.Request) bool {
	return s.Idempotency != nil && r.Header.Get(idempotencyHeader) != ""
}

// seal encrypts a response that contains a secret with the request's API key.
func seal(r *http.Request, answer []byte) ([]byte, error) {
	sealer, err := newSealer(r)
	if err != nil {
		return nil, err
	}
	return sealer.Seal(nil, nil, answer, nil), nil
}

// unseal returns fault.Conflict if the response was sealed with another API key.
func unseal(r *http.Request, sealed []byte) ([]byte, error) {
	sealer, err := newSealer(r)
	if err != nil {
		return nil, err
	}
	answer, err := sealer.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, fault.New(fault.Conflict, "The Idempotency-Key was used with another API key.")
	}
	return answer, nil
}

func newSealer(r *http.Request) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(r.Header.Get("x-api-key")), nil, "the answer to an idempotent request", 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a response: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("create the cipher of a response: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
