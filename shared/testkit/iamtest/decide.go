package iamtest

import (
	"fmt"
	"slices"
	"strings"
)

type Request struct {
	// Principal is the calling role's ARN. Service is the calling AWS service, such as
	// "sns.amazonaws.com". At most one of them is set. A request with neither is anonymous.
	Principal, Service string
	// Action is an action such as "s3:GetObject". Resource is an ARN, or "*" for actions without a resource.
	Action, Resource string
	// Account is the account that owns the resource. "" means the principal's account.
	Account string
	// Context maps the request's condition keys to their values. Case does not matter in keys.
	Context map[string][]string
}

type Decision struct {
	Allowed bool
	// Reason is the reason given in a rejection's error message.
	Reason string
	// Because lists the deciding statements: the statements that deny or, if nothing denies, the
	// statements that allow.
	Because []Statement
}

// Decide evaluates a request against the policies of its role and its resource. A deny takes precedence. Within an
// account, one allowing policy is enough. If the resource is in another account, both sides must allow the request.
//
// Errors: a policy cannot be evaluated for the request. The request is then rejected.
func Decide(r Request, ofRole, ofResource []Policy) (Decision, error) {
	role, err := r.applying(ofRole, false)
	if err != nil {
		return Decision{}, err
	}
	resource, err := r.applying(ofResource, true)
	if err != nil {
		return Decision{}, err
	}
	denies := func(s Statement) bool { return s.Denies }
	if by := kept(slices.Concat(role, resource), denies); len(by) > 0 {
		return Decision{Reason: r.words("with an explicit deny"), Because: by}, nil
	}
	// If a resource policy names only an account, that account's role policies decide.
	direct := kept(resource, func(s Statement) bool { return r.named(s) == byName })
	var by []Statement
	switch account := accountOf(r.Principal); {
	case r.Account == "" || account == r.Account || account == "":
		by = slices.Concat(role, direct)
	case len(role) > 0 && len(resource) > 0:
		by = slices.Concat(role, resource)
	}
	if len(by) == 0 {
		return Decision{Reason: r.words("because no policy allows it")}, nil
	}
	return Decision{Allowed: true, Because: by}, nil
}

func (r Request) words(why string) string {
	who := r.Principal + r.Service
	if who == "" {
		who = "an anonymous caller"
	}
	return fmt.Sprintf("%s is not authorized to perform: %s on resource: %s %s", who, r.Action, r.Resource, why)
}

func (r Request) applying(policies []Policy, ofResource bool) ([]Statement, error) {
	var found []Statement
	for _, p := range policies {
		for _, s := range p.Statements {
			if s.forResource() != ofResource {
				return nil, fmt.Errorf("statement %q: resource policies must name a principal, and role policies must not", s.Sid)
			}
			applies, err := r.isOf(s)
			if err != nil {
				return nil, fmt.Errorf("statement %q: %w", s.Sid, err)
			}
			if applies {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// isOf reports whether a statement applies to this request: to its principal, action, resource and conditions.
func (r Request) isOf(s Statement) (bool, error) {
	if s.forResource() && r.named(s) == notNamed || !r.isOfAction(s) || !r.isOfResource(s) {
		return false, nil
	}
	for _, c := range s.conditions {
		if holds, err := c.holds(r.key, s.variables); err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

func (r Request) isOfAction(s Statement) bool {
	is := func(pattern string) bool { return matchesAction(pattern, r.Action) }
	if len(s.Actions) > 0 {
		return slices.ContainsFunc(s.Actions, is)
	}
	return !slices.ContainsFunc(s.NotActions, is)
}

func (r Request) isOfResource(s Statement) bool {
	is := func(text string) bool {
		glyphs, ok := pattern(text, s.variables, r.key)
		return ok && (text == "*" || matchesResource(glyphs, r.Resource))
	}
	switch {
	case len(s.Resources) > 0:
		return slices.ContainsFunc(s.Resources, is)
	case len(s.NotResources) > 0:
		return !slices.ContainsFunc(s.NotResources, is)
	}
	return s.forResource()
}

// naming is how a statement identifies the caller.
type naming int

const (
	notNamed naming = iota
	byAccount
	byName
)

func (r Request) named(s Statement) naming {
	if r.Service != "" {
		if slices.Contains(s.Principals["Service"], r.Service) || slices.Contains(s.Principals["AWS"], "*") {
			return byName
		}
		return notNamed
	}
	found, account := notNamed, accountOf(r.Principal)
	for _, name := range s.Principals["AWS"] {
		switch {
		case name == "*", r.Principal != "" && name == r.Principal:
			return byName
		case account != "" && (name == account || accountOf(name) == account && strings.HasSuffix(name, ":root")):
			found = byAccount
		}
	}
	return found
}

func accountOf(arn string) string {
	if parts := strings.SplitN(arn, ":", segments); len(parts) == segments {
		return parts[4]
	}
	return ""
}

// key returns the values of a condition key, whose case does not matter.
func (r Request) key(name string) []string {
	for key, values := range r.Context {
		if strings.EqualFold(key, name) {
			return values
		}
	}
	switch {
	case strings.EqualFold(name, "aws:PrincipalArn") && r.Principal != "":
		return []string{r.Principal}
	case strings.EqualFold(name, "aws:PrincipalAccount") && r.Principal != "":
		return []string{accountOf(r.Principal)}
	}
	return nil
}

func kept(all []Statement, keep func(Statement) bool) []Statement {
	var found []Statement
	for _, s := range all {
		if keep(s) {
			found = append(found, s)
		}
	}
	return found
}
