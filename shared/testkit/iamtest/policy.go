// Package iamtest evaluates IAM policies as AWS documents it, for the calls of programs under test:
// role policies, resource policies, and both together within an account.
//
// A policy with an unknown element, condition operator or type of principal cannot be parsed,
// because this package does not know its effect.
//
// The rules come from "IAM JSON policy elements reference" and "Policy evaluation logic" in the IAM User Guide.
package iamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Policy is a policy document. Statements have principals in resource policies, but not in role policies.
type Policy struct {
	// Version is normally "2012-10-17". Policies with another version have no variables.
	Version    string
	Statements []Statement
}

// Statement is a policy statement. If Actions is empty, NotActions applies. The same holds for
// resources. A statement without resources applies to the resource to which its policy is attached.
type Statement struct {
	Sid string
	// Denies is false if the statement allows.
	Denies                  bool
	Actions, NotActions     []string
	Resources, NotResources []string
	// Principals lists principals by type, "AWS" or "Service". "*" of type "AWS" means everyone.
	Principals map[string][]string
	conditions []condition
	variables  bool
}

// values is a list of strings. In JSON, it may be a single string.
type values []string

func (v *values) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	all, isList := value.([]any)
	if !isList {
		all = []any{value}
	}
	*v = values{}
	for _, one := range all {
		switch one := one.(type) {
		case string, bool, json.Number:
			*v = append(*v, fmt.Sprint(one))
		default:
			return fmt.Errorf("%s is not a list of values", text)
		}
	}
	return nil
}

type written struct {
	Sid, Effect                              string
	Action, NotAction, Resource, NotResource values
	Principal                                json.RawMessage
	Condition                                map[string]map[string]values
}

// ParsePolicy parses a policy document. Errors name an element that is invalid or not supported here.
func ParsePolicy(text []byte) (Policy, error) {
	var document struct {
		Version, ID string
		Statement   json.RawMessage
	}
	if err := strictly(text, &document); err != nil {
		return Policy{}, fmt.Errorf("read a policy: %w", err)
	}
	var statements []json.RawMessage
	if err := json.Unmarshal(document.Statement, &statements); err != nil {
		statements = []json.RawMessage{document.Statement} // a single statement needs no list
	}
	policy := Policy{Version: document.Version}
	for i, text := range statements {
		var w written
		err := strictly(text, &w)
		if err == nil {
			var s Statement
			if s, err = w.statement(document.Version); err == nil {
				policy.Statements = append(policy.Statements, s)
				continue
			}
		}
		return Policy{}, fmt.Errorf("read statement %d of a policy: %w", i+1, err)
	}
	if len(policy.Statements) == 0 {
		return Policy{}, fmt.Errorf("the policy has no statements")
	}
	return policy, nil
}

func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func (w written) statement(version string) (Statement, error) {
	s := Statement{
		Sid: w.Sid, Denies: w.Effect == "Deny", Actions: w.Action, NotActions: w.NotAction, Resources: w.Resource,
		NotResources: w.NotResource, variables: version == "2012-10-17",
	}
	if w.Effect != "Allow" && w.Effect != "Deny" {
		return s, fmt.Errorf("the effect must be Allow or Deny, not %q", w.Effect)
	}
	if (len(s.Actions) == 0) == (len(s.NotActions) == 0) {
		return s, fmt.Errorf("a statement must have either Action or NotAction")
	}
	if len(s.Resources) > 0 && len(s.NotResources) > 0 {
		return s, fmt.Errorf("a statement must have either Resource or NotResource")
	}
	for _, action := range slices.Concat(s.Actions, s.NotActions) {
		if action != "*" && !strings.Contains(action, ":") {
			return s, fmt.Errorf("the action %q lacks a service", action)
		}
	}
	var err error
	if s.Principals, err = principals(w.Principal); err != nil {
		return s, err
	}
	for operator, keys := range w.Condition {
		for key, values := range keys {
			c, err := newCondition(operator, key, values)
			if err != nil {
				return s, err
			}
			s.conditions = append(s.conditions, c)
		}
	}
	return s, nil
}

func principals(text json.RawMessage) (map[string][]string, error) {
	if text == nil {
		return nil, nil
	}
	var everyone string
	if json.Unmarshal(text, &everyone) == nil {
		if everyone != "*" {
			return nil, fmt.Errorf("the principal %q has no kind", everyone)
		}
		return map[string][]string{"AWS": {"*"}}, nil
	}
	var kinds map[string]values
	if err := json.Unmarshal(text, &kinds); err != nil {
		return nil, err
	}
	named := map[string][]string{}
	for kind, names := range kinds {
		if kind != "AWS" && kind != "Service" {
			return nil, fmt.Errorf("principals of the kind %s are not supported", kind)
		}
		named[kind] = names
	}
	return named, nil
}

func (s Statement) forResource() bool { return s.Principals != nil }
