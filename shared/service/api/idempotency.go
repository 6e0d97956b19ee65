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
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/idempotency"
)

// The header by which a client names a request that makes something, so that it
// can send it again (an extension of this service), and the one that says that an
// answer is that of an earlier request.
const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotent-Replayed"
)

// idempotencyKey gives the request's key, "" when it has none.
//
// Errors: problems when it is none that can be kept.
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
		wrong := valueProblem(idempotencyHeader, key, fmt.Sprintf("Send one key of 1 to %d printable ASCII characters.", idempotency.MaxKey))
		wrong.Location[0] = "header"
		return "", problems{wrong}
	}
	return key, nil
}

// creation is what a request makes.
type creation struct {
	// asked is what the request asks for, as JSON can say it: what differs from
	// one sending of the same request to the next is not in it.
	asked any
	// resource is the id of what it makes.
	resource string
	// made tells whether an earlier request made the resource, and what it was
	// then answered.
	made idempotency.Made
	// create makes it, and gives what is to be answered to later requests
	// beyond the id, if anything is.
	create func(ctx context.Context) (answer []byte, err error)
}

// createTime is how long a creation may take, the wait for another request with
// its Idempotency-Key included.
const createTime = 30 * time.Second

// once makes what a request asks for, and makes it once for all requests of the
// account that carry the same Idempotency-Key. It gives nil when this request has
// made it, else what an earlier one made, which the answer's header then says.
// From here on it changes nothing that the client leaves: a creation that breaks
// off is the one state that cannot be cleaned up after.
//
// Errors: those of create; problems of the key; fault.Conflict when the key was
// used for another request, or is in use.
func (s *service) once(w http.ResponseWriter, r *http.Request, c call, new creation) (*idempotency.Record, error) {
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
		_, err := new.create(ctx)
		return nil, err
	}
	// Aliases of a model are one model, and so are both homes' names of a route.
	asked := []any{r.Pattern, new.asked}
	if c.model != nil {
		asked = append(asked, c.model.ID)
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("the fingerprint of a request: %w", err)
	}
	sum := sha256.Sum256(text)
	claim := idempotency.Claim{
		Account: c.who.Account(), Key: keyOf(c, key), Fingerprint: hex.EncodeToString(sum[:]), Resource: new.resource,
	}
	earlier, err := s.Idempotency.Begin(ctx, claim, new.made)
	if err != nil {
		return nil, err
	}
	if earlier != nil {
		w.Header().Set(replayedHeader, "true")
		return earlier, nil
	}
	making, cancel := context.WithTimeout(ctx, idempotency.MakeTime)
	defer cancel()
	answer, err := new.create(making)
	switch {
	case err == nil:
		err := s.Idempotency.Settle(ctx, claim, answer)
		if err != nil {
			// What was made is told all the same; the next request finds it.
			s.log(r, err)
		}
		return nil, nil
	case refused(err):
		if err := s.Idempotency.Withdraw(ctx, claim); err != nil {
			s.log(r, err) // the key is free again once the claim is abandoned
		}
	}
	return nil, err
}

// onceSecret is once for what is answered with a secret, as tokens are. create
// makes it and gives the answer's body. A request that was sent before gets that
// one's secret, which nobody but who has the request's API key can read meanwhile.
//
// Errors: those of once.
func (s *service) onceSecret(w http.ResponseWriter, r *http.Request, c call, asked any, create func(context.Context) (any, error)) (answer []byte, err error) {
	earlier, err := s.once(w, r, c, creation{
		asked: asked, resource: rand.Text(),
		// What has a secret that nobody was told cannot be used: it is as if it
		// had not been made.
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
	if answer, err = unseal(r, earlier.Answer); err != nil {
		w.Header().Del(replayedHeader)
	}
	return answer, err
}

// keyOf is the key of a claim. Client tokens are in other hands than permanent
// keys: they cannot take those's keys, nor learn of what was made under them. A
// token is short-lived, so all of an account's have the same keys.
func keyOf(c call, key string) string {
	if c.who.Token != nil {
		return "token/" + key
	}
	return "key/" + key
}

// unlessKnown drops a refusal for want of room: a request that was accepted before
// makes nothing that takes any.
//
// Errors: the refusal.
func (s *service) unlessKnown(r *http.Request, c call, refusal error) error {
	if !s.repeatable(r) || !fault.Is(refusal, fault.Limited) && !fault.Is(refusal, fault.Unavailable) {
		return refusal
	}
	known, err := s.Idempotency.Known(r.Context(), c.who.Account(), keyOf(c, r.Header.Get(idempotencyHeader)))
	if err != nil {
		s.log(r, err) // it is refused, and may come again
	}
	if known {
		return nil
	}
	return refusal
}

// repeatable reports whether the caller can ask again for what the request makes.
func (s *service) repeatable(r *http.Request) bool {
	return s.Idempotency != nil && r.Header.Get(idempotencyHeader) != ""
}

// seal makes an answer unreadable without the API key of the request, for an
// answer that holds a secret: nothing that is kept gives it away.
func seal(r *http.Request, answer []byte) ([]byte, error) {
	sealer, err := newSealer(r)
	if err != nil {
		return nil, err
	}
	return sealer.Seal(nil, nil, answer, nil), nil
}

// unseal reads what seal made.
//
// Errors: fault.Conflict when it was made by a request with another API key.
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
		return nil, fmt.Errorf("the key of an answer: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the cipher of an answer: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
