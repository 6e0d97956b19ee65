package credential

import "context"

// Guard slows down callers who fail to authenticate, by where they call from.
type Guard interface {
	// Admit returns nil if a caller may try a secret that has not worked before.
	//
	// Errors: fault.Limited with RetryAfter.
	Admit(caller string) error
	// Failed counts a failure of the caller, and returns after the delay that it
	// costs.
	//
	// Errors: fault.Limited with RetryAfter, if the failure must be answered so.
	Failed(ctx context.Context, caller string) error
}

type callerKey struct{}

// WithCaller adds to the context where a call comes from, such as an address.
func WithCaller(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// Caller returns where a call comes from, "" if unknown.
func Caller(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
}

// Guard slows down failed authentications of known callers. It must be called
// before the first authentication.
func (a *Authenticator) Guard(guard Guard) { a.guard = guard }

// drawnLength is the least length of the secrets that this service generates, which
// have 192 random bits and more.
const drawnLength = len("ek_") + 32

// guarded authenticates a caller. A secret that has worked before is not slowed
// down by failures of others at the same address. Nor is one that is too long to be
// guessed: otherwise somebody without a key could lock out every new client token
// that comes from the same address.
func (a *Authenticator) guarded(ctx context.Context, secret string) (Principal, error) {
	caller := Caller(ctx)
	if a.guard == nil || caller == "" {
		who, _, err := a.authenticate(ctx, secret)
		return who, err
	}
	if len(secret) < drawnLength && !a.hasWorked(HashOf(secret)) {
		if err := a.guard.Admit(caller); err != nil {
			return Principal{}, err
		}
	}
	who, isGuess, err := a.authenticate(ctx, secret)
	if isGuess {
		if limited := a.guard.Failed(ctx, caller); limited != nil {
			return Principal{}, limited
		}
	}
	return who, err
}

// hasWorked reports whether a secret is cached as one that works.
func (a *Authenticator) hasWorked(hash Hash) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cache[hash].works()
}
