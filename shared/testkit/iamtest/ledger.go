package iamtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Ledger records the distinct requests of each role. The zero value is empty and ready to use. It
// is safe for concurrent use.
type Ledger struct {
	mu sync.Mutex
	by map[string]map[string]Request
}

func (l *Ledger) Note(role string, r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]map[string]Request{}
	}
	if l.by[role] == nil {
		l.by[role] = map[string]Request{}
	}
	l.by[role][r.Action+" "+r.Resource] = r
}

func (l *Ledger) Of(role string) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var requests []Request
	for _, r := range l.by[role] {
		requests = append(requests, r)
	}
	return requests
}

// Unseen describes permissions that are needed although no test can show the need. Why is the reason. Role and Action
// are patterns for path.Match. Resource is part of an ARN, or empty to match every resource.
type Unseen struct{ Role, Action, Resource, Why string }

func (u Unseen) is(p Permission) bool {
	role, _ := path.Match(u.Role, p.Role)
	action, _ := path.Match(u.Action, p.Action)
	return role && action && strings.Contains(p.Resource, u.Resource)
}

// Judge returns the roles' permissions that no request needed, except the permissions listed in unseen.
func (l *Ledger) Judge(a *Account, roles []string, unseen []Unseen) ([]string, error) {
	var wrong []string
	for _, role := range roles {
		unneeded, err := a.Unneeded(role, l.Of(role))
		if err != nil {
			return nil, err
		}
		for _, p := range unneeded {
			if !slices.ContainsFunc(unseen, func(u Unseen) bool { return u.is(p) }) {
				wrong = append(wrong, fmt.Sprintf("%s: no request needs it", p))
			}
		}
	}
	return wrong, nil
}
