package awstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"cutroom/shared/testkit/iamtest"
)

// The local AWS does not check permissions. A proxy in front of it checks them against the
// deployment's policies: it rejects calls that AWS would reject, with the error of the service.

// Administrator is the tests' own access key. Calls made with it are not checked.
const Administrator = "test"

// Here is the partition, region and account for which the deployment's policies are evaluated.
var Here = iamtest.Place{Partition: "aws", Region: Region, Account: Account}

// DeployedRights returns the permissions of the roles in a deployment of stage "dev". A test in
// infra compares them with its templates.
func DeployedRights(t T) iamtest.Rights {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "infra", "testdata", "policies.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rights iamtest.Rights
	if err := json.Unmarshal(text, &rights); err != nil {
		t.Fatal(err)
	}
	return rights
}

func Deployed(t T) *iamtest.Account {
	t.Helper()
	account, err := iamtest.NewAccount(Here, DeployedRights(t))
	if err != nil {
		t.Fatal(err)
	}
	return account
}

type Guard struct {
	// Account has the roles and the resource policies.
	Account *iamtest.Account
	// Names maps names in this test to names in the deployment. Names without an entry stay unchanged.
	Names map[string]string
	// Role returns the role that uses an access key. If it is nil, the key is the name of the role.
	Role func(accessKey string) string
	// Asked, if not nil, is called with a role and a call's requests before each decision. It must
	// be safe for concurrent use.
	Asked func(role string, request iamtest.Request)
}

type guarding struct {
	Guard
	names iamtest.Names

	mu       sync.Mutex
	rejected []string
}

// Guard makes the proxy reject calls that the policies would make AWS reject. The test fails if a call's action or
// role is unknown, or if a call was rejected for a reason that Rejected has not returned. Reasons that Rejected has
// returned are accepted from then on, because the other calls of a rejected request may be rejected later.
func (p *Proxy) Guard(t T, guard Guard) {
	t.Helper()
	g := &guarding{Guard: guard, names: iamtest.Names{Place: Here, Rename: func(name string) string {
		if deployed, ok := guard.Names[name]; ok {
			return deployed
		}
		return name
	}}}
	p.mu.Lock()
	if p.guard != nil {
		g.rejected = p.guard.taken()
	}
	p.guard = g
	p.mu.Unlock()
	t.Cleanup(func() {
		p.mu.Lock()
		known := p.known
		p.mu.Unlock()
		for _, rejection := range p.Rejected() {
			if !slices.Contains(known, rejection) {
				t.Errorf("rejected: %s", rejection)
			}
		}
	})
}

// Rejected returns the reasons for rejections since it was last called, sorted and without duplicates.
func (p *Proxy) Rejected() []string {
	g := p.guarded()
	if g == nil {
		return nil
	}
	rejected := g.taken()
	slices.Sort(rejected)
	rejected = slices.Compact(rejected)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = slices.Concat(p.known, rejected)
	return rejected
}

func (g *guarding) taken() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	rejected := g.rejected
	g.rejected = nil
	return rejected
}

func (p *Proxy) guarded() *guarding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guard
}

// rejects returns why a call is rejected, or "" if it is allowed.
func (g *guarding) rejects(r *http.Request, body []byte) string {
	requests, err := g.names.Requests(r, body)
	if err != nil {
		return g.note(err.Error())
	}
	return g.rejectsAny(r, requests...)
}

// hides returns why the caller must not learn that an object is missing, or "" if the caller may learn it.
func (g *guarding) hides(r *http.Request, status int) string {
	list, ok := g.names.ToReportMissing(r, status)
	if !ok {
		return ""
	}
	return g.rejectsAny(r, list)
}

func (g *guarding) rejectsAny(r *http.Request, requests ...iamtest.Request) string {
	accessKey, _ := iamtest.Caller(r)
	if accessKey == Administrator {
		return ""
	}
	role := accessKey
	if g.Role != nil && accessKey != "" {
		if role = g.Role(accessKey); role == "" {
			return g.note("the access key is unknown: " + accessKey)
		}
	}
	for _, request := range requests {
		if g.Asked != nil && role != "" {
			g.Asked(role, request)
		}
		decided, err := g.Account.Decide(role, request)
		if err != nil {
			return g.note(err.Error())
		}
		if !decided.Allowed {
			return g.note(decided.Reason)
		}
	}
	return ""
}

func (g *guarding) note(reason string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rejected = append(g.rejected, reason)
	return reason
}

// deny responds like a service whose policies do not allow the call.
func deny(w http.ResponseWriter, r *http.Request, reason string) {
	_, service := iamtest.Caller(r)
	message := "User: " + reason
	if r.Header.Get("X-Amz-Target") == "" && service != "lambda" {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", message)
		}
		return
	}
	code, status := "AccessDeniedException", http.StatusBadRequest
	switch service {
	case "lambda":
		status = http.StatusForbidden
		w.Header().Set("X-Amzn-Errortype", code)
	case "sqs":
		code, status = "com.amazonaws.sqs#AccessDenied", http.StatusForbidden
		w.Header().Set("X-Amzn-Query-Error", "AccessDenied;Sender")
	case "dynamodb":
		code = "com.amazon.coral.service#AccessDeniedException"
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	text, _ := json.Marshal(map[string]string{"__type": code, "message": message, "Message": message})
	_, _ = w.Write(text) // the client may have disconnected
}
