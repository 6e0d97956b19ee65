package credential_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/alloctest"
)

// jwtWorld is a store with one key, with a minter and an authenticator that use it.
type jwtWorld struct {
	*testing.T
	now           time.Time
	key           credential.Key
	store         *tokens
	authenticator *credential.Authenticator
}

func newJWTWorld(t *testing.T) *jwtWorld {
	t.Helper()
	w := &jwtWorld{T: t, now: time.Now()}
	var err error
	if w.key, err = credential.NewKey("ck_development", "acme", "default", "", w.now); err != nil {
		t.Fatal(err)
	}
	w.store = &tokens{keys{byHash: map[credential.Hash]credential.Key{w.key.Hash: w.key}},
		map[credential.Hash]credential.Token{}, nil}
	w.authenticator = credential.NewAuthenticator(w.store, credential.DefaultTiers(), func() time.Time { return w.now })
	return w
}

func (w *jwtWorld) mint(scope credential.Scope, lifetime time.Duration) (credential.Issued, credential.Token) {
	w.Helper()
	issued, token, err := w.minter("the secret").Mint(w.Context(), w.key, credential.TokenRequest{Scope: scope, Lifetime: lifetime})
	if err != nil {
		w.Fatal(err)
	}
	return issued, token
}

func (w *jwtWorld) minter(secret string) *credential.Minter {
	return &credential.Minter{
		Store: w.store, Random: rand.Reader, Now: func() time.Time { return w.now },
		Secret: func(context.Context) ([]byte, error) { return []byte(secret), nil },
	}
}

// forms maps the name of each token format to a function that returns a token in that format.
var forms = map[string]func(credential.Issued) string{
	"secret": func(i credential.Issued) string { return i.Secret },
	"JWT":    func(i credential.Issued) string { return i.JWT },
}

func TestTokenWorksUntilExpiry(t *testing.T) {
	for name, form := range forms {
		w := newJWTWorld(t)
		scope := credential.Scope{Models: []string{"gen-2.5"}, Origins: []string{"https://a.example"},
			MaxSession: 90 * time.Second}
		issued, token := w.mint(scope, 3*time.Second)
		who, err := w.authenticator.Authenticate(t.Context(), form(issued))
		if err != nil || who.Account() != "acme" || who.Tier.Name != "default" || who.Token == nil ||
			who.Token.Hash != token.Hash || !strings.HasPrefix(issued.Secret, "ek_") {
			t.Fatalf("%s: got %+v, %v", name, who, err)
		}
		if got := who.Scope(); !got.AllowsModel("gen-2.5") || got.AllowsModel("gen-2.1") ||
			got.AllowsOrigin("https://b.example") || got.MaxSession != scope.MaxSession {
			t.Errorf("%s: the scope is %+v", name, got)
		}
		if _, err := w.authenticator.Authenticate(t.Context(), form(issued)); err != nil || w.store.reads != 1 {
			t.Errorf("%s: %d reads, %v", name, w.store.reads, err)
		}
		w.now = token.ExpiresAt.Add(-time.Millisecond)
		if _, err := w.authenticator.Authenticate(t.Context(), form(issued)); err != nil {
			t.Errorf("%s, a millisecond before its expiry: %v", name, err)
		}
		w.now = token.ExpiresAt
		if _, err := w.authenticator.Authenticate(t.Context(), form(issued)); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s, at its expiry: %v", name, err)
		}
	}
}

func TestJWTClaimsDescribeToken(t *testing.T) {
	w := newJWTWorld(t)
	issued, token := w.mint(credential.Scope{Models: []string{"gen-latest"}, MaxSession: time.Minute}, time.Hour)
	parts := strings.Split(issued.JWT, ".")
	var header, claims map[string]any
	for part, into := range map[string]*map[string]any{parts[0]: &header, parts[1]: &claims} {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if header["alg"] != "EdDSA" || header["typ"] != "JWT" || header["kid"] != w.keySet("the secret")[0].ID {
		t.Errorf("the header is %v", header)
	}
	want, err := json.Marshal(map[string]any{
		"iss": "cutroom", "aud": []string{"cutroom"}, "sub": "acme", "parent_api_key_id": w.key.ID,
		"jti": token.Hash.String(), "iat": token.CreatedAt.Unix(), "exp": token.ExpiresAt.Unix(),
		"models":      []string{"gen-latest"},
		"permissions": map[string]any{"models": []string{"gen-latest"}},
		"constraints": map[string]any{"realtime": map[string]any{"maxSessionDuration": 60}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(claims); err != nil || string(got) != string(want) {
		t.Errorf("the claims are\n%s, want\n%s", got, want)
	}
	if strings.Contains(issued.JWT, issued.Secret) {
		t.Error("the JWT contains the secret")
	}
}

func (w *jwtWorld) keySet(secret string) []credential.JWK {
	w.Helper()
	keys, err := w.minter(secret).KeySet(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return keys
}

// verify checks a JWT as a backend does: with a key set, and without this service's code.
func (w *jwtWorld) verify(text string, keys []credential.JWK) error {
	w.Helper()
	_, err := jwt.Parse(text, func(token *jwt.Token) (any, error) {
		for _, key := range keys {
			if key.ID == token.Header["kid"] && key.Type == "OKP" && key.Curve == "Ed25519" && key.Use == "sig" {
				x, err := base64.RawURLEncoding.DecodeString(key.X)
				return ed25519.PublicKey(x), err
			}
		}
		return nil, errors.New("the key is unknown")
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuer("cutroom"), jwt.WithAudience("cutroom"),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return w.now }))
	return err
}

// Verifiers may cache a key set for days, and tokens outlive the key that signed them.
func TestKeysChangeWithoutInvalidatingTokens(t *testing.T) {
	w := newJWTWorld(t)
	const month = 30 * 24 * time.Hour
	cached := w.keySet("the secret")
	first, _ := w.mint(credential.Scope{}, time.Hour)
	began := w.now
	w.now = w.now.Add(month)
	second, _ := w.mint(credential.Scope{}, time.Hour)
	if err := w.verify(second.JWT, cached); err != nil {
		t.Errorf("a new JWT with a cached key set: %v", err)
	}
	renewed := w.keySet("the secret")
	if renewed[0] == cached[0] {
		t.Error("the same key signs for two months")
	}
	w.now = began
	for name, keys := range map[string][]credential.JWK{"cached": cached, "renewed": renewed} {
		if err := w.verify(first.JWT, keys); err != nil {
			t.Errorf("an old JWT with the %s key set: %v", name, err)
		}
	}
	if w.verify(first.JWT, w.keySet("another secret")) == nil {
		t.Error("another deployment's key set verifies the JWT")
	}
	if _, err := w.authenticator.Authenticate(t.Context(), first.JWT); err != nil {
		t.Errorf("the service itself: %v", err)
	}
}

// In version 0.1.0 each JWT had its own key, and a key id derived from the token's hash.
func TestJWTOfVersion010Works(t *testing.T) {
	w := newJWTWorld(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, token := w.mint(credential.Scope{}, time.Hour)
	token.Verifier = public
	w.store.byHash[token.Hash] = token
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": "cutroom", "jti": token.Hash.String(), "permissions": nil, "constraints": nil,
	})
	unsigned.Header["kid"] = "tok_" + token.Hash.String()[:12]
	signed, err := unsigned.SignedString(private)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := w.authenticator.Authenticate(t.Context(), signed); err != nil || who.Token.Hash != token.Hash {
		t.Errorf("%+v, %v", who, err)
	}
}

// The largest scope is accepted in both formats.
func TestLargestJWTWorks(t *testing.T) {
	w := newJWTWorld(t)
	scope := credential.Scope{MaxSession: time.Hour}
	for i := range 20 {
		scope.Models = append(scope.Models, fmt.Sprintf("%0128d", i))
		scope.Origins = append(scope.Origins, strings.Repeat("s", 32)+"://"+strings.Repeat("h", 253)+":65535")
	}
	issued, _ := w.mint(scope, time.Hour)
	if _, err := w.authenticator.Authenticate(t.Context(), issued.JWT); err != nil {
		t.Errorf("%d bytes: %v", len(issued.JWT), err)
	}
}

func TestForgedJWTsAreRejected(t *testing.T) {
	w := newJWTWorld(t)
	issued, token := w.mint(credential.Scope{}, time.Hour)
	other, otherToken := w.mint(credential.Scope{}, time.Hour)
	_, mallory, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, kid := token.Hash.String(), w.keySet("the secret")[0].ID
	old := map[string]any{"kid": "tok_" + id[:12]}
	forge := func(method jwt.SigningMethod, key any, claims jwt.MapClaims, header map[string]any) string {
		unsigned := jwt.NewWithClaims(method, claims)
		unsigned.Header["kid"] = kid
		for name, value := range header {
			unsigned.Header[name] = value
		}
		signed, err := unsigned.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	parts, others := strings.Split(issued.JWT, "."), strings.Split(other.JWT, ".")
	payload := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	noVerifier, oldToken := w.mint(credential.Scope{}, time.Hour)
	oldToken.Verifier = nil
	w.store.byHash[oldToken.Hash] = oldToken

	for name, text := range map[string]string{
		"no algorithm": forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType,
			jwt.MapClaims{"jti": id}, nil),
		"an HMAC with the public key": forge(jwt.SigningMethodHS256, []byte(token.Verifier), jwt.MapClaims{"jti": id}, nil),
		"an HMAC with the hash":       forge(jwt.SigningMethodHS256, token.Hash[:], jwt.MapClaims{"jti": id}, nil),
		"another key":                 forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": id}, nil),
		"a key in the header": forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": id},
			map[string]any{"jwk": map[string]any{"kty": "OKP", "crv": "Ed25519",
				"x": base64.RawURLEncoding.EncodeToString(mallory.Public().(ed25519.PublicKey))}}),
		"the header of version 0.1.0": forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": id}, old),
		"no algorithm, with the header of version 0.1.0": forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType,
			jwt.MapClaims{"jti": id}, old),
		"another kid": forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": id},
			map[string]any{"kid": "../../key"}),
		"no id":                  forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{}, nil),
		"an id that is not hex":  forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": "zz"}, nil),
		"an id that is a number": forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": 5}, nil),
		"a short id":             forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": id[:62]}, nil),
		"an unknown id": forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": strings.Repeat("ab", 32)},
			map[string]any{"kid": "tok_abababababab"}),
		"the id of a permanent key": forge(jwt.SigningMethodEdDSA, mallory, jwt.MapClaims{"jti": w.key.Hash.String()},
			map[string]any{"kid": "tok_" + w.key.Hash.String()[:12]}),
		"another token's signature": parts[0] + "." + parts[1] + "." + others[2],
		"another token's claims":    parts[0] + "." + others[1] + "." + parts[2],
		"changed claims": parts[0] + "." + payload(`{"jti":"`+otherToken.Hash.String()+`"}`) + "." +
			parts[2],
		"no signature":                       parts[0] + "." + parts[1] + ".",
		"a signature of nothing":             parts[0] + "." + parts[1] + "." + strings.Repeat("A", 86),
		"padding":                            issued.JWT + "==",
		"a trailing newline":                 issued.JWT + "\n",
		"another spelling of the last digit": issued.JWT[:len(issued.JWT)-1] + "z",
		"a fourth part":                      issued.JWT + ".x",
		"no JSON":                            "eyJ." + parts[1] + "." + parts[2],
		"too long":                           "eyJ" + strings.Repeat("A", 1<<20) + "." + parts[1] + "." + parts[2],
		"a token without a key":              noVerifier.JWT,
	} {
		if who, err := w.authenticator.Authenticate(t.Context(), text); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if _, err := w.authenticator.Authenticate(t.Context(), issued.JWT); err != nil {
		t.Errorf("the genuine JWT: %v", err)
	}

	// A store error does not invalidate the token.
	w.now = w.now.Add(credential.CacheAge)
	w.store.failure = errors.New("the disk is on fire")
	if _, err := w.authenticator.Authenticate(t.Context(), issued.JWT); err == nil || fault.Is(err, fault.Unauthorized) {
		t.Errorf("a failing store: %v", err)
	}
}

func FuzzAuthenticateJWT(f *testing.F) {
	f.Add("eyJhbGciOiJFZERTQSJ9.e30.AA")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, text string) {
		w := newJWTWorld(t)
		issued, _ := w.mint(credential.Scope{}, time.Hour)
		parts := strings.Split(issued.JWT, ".")
		for _, forged := range []string{text, "eyJ" + text, parts[0] + "." + parts[1] + "." + text,
			parts[0] + "." + text + "." + parts[2]} {
			if forged == issued.JWT {
				continue
			}
			if _, err := w.authenticator.Authenticate(t.Context(), forged); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%q: %v", forged, err)
			}
		}
	})
}

// A JWT is decoded before its signature is verified, because its claims name the key. Decoding may
// use at most 20 bytes of memory per byte.
func TestForgedJWTsNeedLittleMemory(t *testing.T) {
	w := newJWTWorld(t)
	const most = 24 << 10 // the longest decoded JWT has 32 KiB of base64
	jwt := func(header, claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(header)) + "." + encode([]byte(claims)) + "." + strings.Repeat("A", 86)
	}
	const header = `{"alg":"EdDSA"`
	for name, text := range map[string]string{
		"header of members": jwt(alloctest.Numbered(most-200, header, `,"%x":0`, `}`), `{}`),
		"header of lists":   jwt(alloctest.Filled(most-200, header+`,"a":[0`, `,[]`, `]}`), `{}`),
		"header of numbers": jwt(alloctest.Filled(most-200, header+`,"a":[0`, `,0`, `]}`), `{}`),
		"header of objects": jwt(alloctest.Filled(most-200, header+`,"a":[0`, `,{"":0}`, `]}`), `{}`),
		"deep header":       jwt(alloctest.Filled(most-200, "", `{"":`, ""), `{}`),
		"claims":            jwt(header+`}`, alloctest.Numbered(most-200, `{"a":0`, `,"%x":0`, `}`)),
		"audiences":         jwt(header+`}`, alloctest.Filled(most-200, `{"aud":[""`, `,""`, `]}`)),
		"numbers":           jwt(header+`}`, alloctest.Filled(most-200, `{"aud":[0`, `,0`, `]}`)),
		"models":            jwt(header+`}`, alloctest.Filled(most-200, `{"permissions":{"models":[""`, `,""`, `]}}`)),
		"same claim":        jwt(header+`}`, alloctest.Filled(most-200, `{"iss":""`, `,"aud":""`, `}`)),
		"times":             jwt(header+`}`, alloctest.Filled(most-200, `{"exp":0`, `,"exp":0`, `}`)),
		"deep claims":       jwt(header+`}`, strings.Repeat("[", most-200)),
	} {
		if len(text) < 31<<10 || len(text) > 32<<10 {
			t.Fatalf("%s has %d bytes", name, len(text))
		}
		took := alloctest.Of(func() {
			if _, err := w.authenticator.Authenticate(t.Context(), text); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if took > 20*len(text) {
			t.Errorf("%s: %d bytes took %d bytes of memory, %.1f per byte", name, len(text), took, float64(took)/float64(len(text)))
		}
	}
	if w.store.reads > 0 {
		t.Errorf("forged JWTs took %d reads, want 0", w.store.reads)
	}
}

// An invalid secret causes at most one read of the records, and none if it is tried again soon. While a caller has
// too many delayed failures, short secrets, which could be guesses, are not looked up.
func TestInvalidSecretsTakeFewReads(t *testing.T) {
	w := newJWTWorld(t)
	issued, _ := w.mint(credential.Scope{}, time.Hour)
	forged := issued.JWT[:len(issued.JWT)-4] + "AAAA"
	reads := func() int {
		before := w.store.reads
		w.store.reads = 0
		return before
	}
	reads()
	for name, c := range map[string]struct {
		secret string
		most   int
	}{
		"empty": {"", 0}, "junk": {"junk", 0}, "a long key": {"ck_" + strings.Repeat("a", 60_000), 0},
		"a key": {"ck_not_a_key", 1}, "a token": {"ek_" + strings.Repeat("a", 40), 1}, "a forged JWT": {forged, 1},
		"dots": {"eyJ..", 0},
	} {
		for try := range 3 {
			if _, err := w.authenticator.Authenticate(t.Context(), c.secret); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%s: %v", name, err)
			}
			if got := reads(); got > c.most || try > 0 && got > 0 {
				t.Errorf("%s, attempt %d: %d reads", name, try, got)
			}
		}
	}
	w.authenticator.Guard(full{})
	ctx := called{t.Context()}
	for i := range 100 {
		if _, err := w.authenticator.Authenticate(ctx, fmt.Sprint("ck_guess_number_", i)); !fault.Is(err, fault.Limited) {
			t.Fatalf("authenticating a guess: %v", err)
		}
	}
	if got := reads(); got > 0 {
		t.Errorf("guesses beyond the limit of waiting failures took %d reads, want 0", got)
	}
}

type full struct{}

func (full) Admit(string) error                   { return fault.New(fault.Limited, "too many") }
func (full) Failed(context.Context, string) error { return fault.New(fault.Limited, "too many") }

// called is the context of a request whose caller is known.
type called struct{ context.Context }

func (c called) Value(key any) any {
	if credential.IsCaller(key) {
		return func() string { return "192.0.2.1" }
	}
	return c.Context.Value(key)
}
