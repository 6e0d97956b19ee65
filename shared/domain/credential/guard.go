package credential

import "context"

// Guard slows down callers that fail to authenticate. Callers are identified by address.
type Guard interface {
	// Admit decides whether the caller may try a secret that has not worked before.
	//
	// Errors: fault.Limited with RetryAfter.
	Admit(caller string) error
	// Failed counts a failed attempt by the caller, and returns after a delay.
	//
	// Errors: fault.Limited with RetryAfter. The caller must get this error instead of the authentication error.
	Failed(ctx context.Context, caller string) error
}

type callerKey struct{}

// IsCaller reports whether a context's value with the key is the function that returns the caller's address, or "" if
// it is unknown.
func IsCaller(key any) bool { return key == callerKey{} }

// Caller returns the caller's address, or "" if unknown.
func Caller(ctx context.Context) string {
	if caller, ok := ctx.Value(callerKey{}).(func() string); ok {
		return caller()
	}
	return ""
}

// Guard sets the guard. It must be called before the first authentication.
func (a *Authenticator) Guard(guard Guard) { a.guard = guard }

// drawnLength is the minimum length of generated secrets, which have at least 192 random bits.
const drawnLength = len("ek_") + 32

// guarded authenticates a caller. A secret that has worked before, or that is too long to guess, is
// not slowed down by other callers' failures at the same address. Otherwise a caller without a key
// could lock out new client tokens at the same address.
func (a *Authenticator) guarded(ctx context.Context, secret string) (Principal, error) {
	hash := HashOf(secret)
	if a.guard != nil && len(secret) < drawnLength && !a.hasWorked(hash) {
		if caller := Caller(ctx); caller != "" {
			if err := a.guard.Admit(caller); err != nil {
				return Principal{}, err
			}
		}
	}
	who, isGuess, err := a.authenticate(ctx, secret, hash)
	if isGuess && a.guard != nil {
		if caller := Caller(ctx); caller != "" {
			if limited := a.guard.Failed(ctx, caller); limited != nil {
				return Principal{}, limited
			}
		}
	}
	return who, err
}

func (a *Authenticator) hasWorked(hash Hash) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cache[hash].works()
}
