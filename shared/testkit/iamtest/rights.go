package iamtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Account decides whether calls are allowed by its permissions.
type Account struct {
	Place
	roles     map[string][]Policy
	resources map[string][]Policy
	managed   map[string][]string
	functions map[string]string
}

func NewAccount(place Place, rights Rights) (*Account, error) {
	roles, err := parsed(rights.Roles)
	if err != nil {
		return nil, err
	}
	resources, err := parsed(rights.Resources)
	return &Account{place, roles, resources, rights.Managed, rights.Functions}, err
}

func parsed(documents map[string][]json.RawMessage) (map[string][]Policy, error) {
	policies := map[string][]Policy{}
	for name, texts := range documents {
		policies[name] = nil
		for _, text := range texts {
			p, err := ParsePolicy(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			policies[name] = append(policies[name], p)
		}
	}
	return policies, nil
}

func (a *Account) HasRole(name string) bool {
	_, ok := a.roles[name]
	return ok
}

func (a *Account) RoleOf(function string) string { return a.functions[function] }

// Decide evaluates a request made by the named role. "" means an anonymous request.
//
// Errors: the role does not exist, or its policies cannot be evaluated.
func (a *Account) Decide(role string, r Request) (Decision, error) {
	if role == "" {
		return Decide(r, nil, a.resources[ofPolicy(r.Resource)])
	}
	if !a.HasRole(role) {
		return Decision{}, fmt.Errorf("no role %s", role)
	}
	if len(a.managed[role]) > 0 {
		return Decision{}, fmt.Errorf("%s has AWS managed policies, which are not supported: %v", role, a.managed[role])
	}
	r.Principal = a.ARN("iam", "role/"+role)
	return Decide(r, a.roles[role], a.resources[ofPolicy(r.Resource)])
}

// ofPolicy returns the ARN of the resource that has the policy. For an object, this is the bucket.
func ofPolicy(arn string) string {
	if strings.Contains(arn, ":s3:::") {
		arn, _, _ = strings.Cut(arn, "/")
	}
	return arn
}

// Without returns a copy of the account in which an action is removed from a role's policies.
func (a *Account) Without(role, action string) *Account {
	less := *a
	less.roles = maps.Clone(a.roles)
	less.roles[role] = nil
	for _, p := range a.roles[role] {
		p.Statements = slices.Clone(p.Statements)
		for i, s := range p.Statements {
			p.Statements[i].Actions = slices.DeleteFunc(slices.Clone(s.Actions),
				func(named string) bool { return strings.EqualFold(named, action) })
		}
		p.Statements = kept(p.Statements, func(s Statement) bool { return len(s.Actions)+len(s.NotActions) > 0 })
		less.roles[role] = append(less.roles[role], p)
	}
	return &less
}

// Unneeded returns the role's permissions (each an action on a resource) that no request needs.
func (a *Account) Unneeded(role string, requests []Request) ([]Permission, error) {
	var all []Permission
	var units []Policy
	for _, p := range a.roles[role] {
		for _, s := range kept(p.Statements, func(s Statement) bool { return !s.Denies }) {
			for _, action := range s.Actions {
				for _, resource := range s.Resources {
					unit := s
					unit.Actions, unit.Resources = []string{action}, []string{resource}
					units = append(units, Policy{Version: p.Version, Statements: []Statement{unit}})
					all = append(all, Permission{role, action, resource})
				}
			}
		}
	}
	needed := make([]bool, len(units))
	for _, r := range requests {
		r.Principal = a.ARN("iam", "role/"+role)
		var by []int
		for i, unit := range units {
			decided, err := Decide(r, []Policy{unit}, nil)
			if err != nil {
				return nil, err
			}
			if decided.Allowed {
				by = append(by, i)
			}
		}
		if len(by) == 1 {
			needed[by[0]] = true
		}
	}
	var unneeded []Permission
	for i, permission := range all {
		if !needed[i] {
			unneeded = append(unneeded, permission)
		}
	}
	return unneeded, nil
}

type Permission struct{ Role, Action, Resource string }

func (p Permission) String() string { return p.Role + " " + p.Action + " " + p.Resource }
