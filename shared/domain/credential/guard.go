package credential

import "context"

// Guard slows callers who fail to authenticate, by where they call from.
type Guard interface {
	// Admit tells whether a caller whose secret has not worked before may try it.
	//
	// Errors: fault.Limited with RetryAfter.
	Admit(caller string) error
	// Failed counts a failure of the caller, and returns after the time that it costs.
	//
	// Errors: fault.Limited with RetryAfter, where the failure is to be answered so.
	Failed(ctx context.Context, caller string) error
}

type callerKey struct{}

// WithCaller says where a call comes from, such as by an address.
func WithCaller(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// Caller is where a call comes from, "" where that is not known.
func Caller(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
}

// Guard has failed authentications slowed, of callers that are known. It is called
// before the first authentication.
func (a *Authenticator) Guard(guard Guard) { a.guard = guard }

// drawnLength is how long the secrets are at least that this service draws itself, of
// 192 random bits and more.
const drawnLength = len("ek_") + 32

// guarded authenticates a caller. A secret that has worked before is not held up by
// the failures of others who call from the same place. Nor is one that is too long to
// be guessed: somebody without a key would otherwise keep every new client token out
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

// hasWorked reports whether a secret is remembered as one that works.
func (a *Authenticator) hasWorked(hash Hash) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cache[hash].works()
}
