package iamtest_test

import (
	"fmt"
	"strings"
	"testing"

	"cutroom/shared/testkit/iamtest"
)

const (
	account      = "111122223333"
	role         = "arn:aws:iam::" + account + ":role/r"
	other        = "arn:aws:iam::444455556666:role/o"
	allows       = `{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}`
	allowsElse   = `{"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::b/*"}`
	denies       = `{"Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::b/*"}`
	deniesElse   = `{"Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::c/*"}`
	onBucket     = `"Action": "s3:*", "Resource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]`
	toRole       = `{"Effect": "Allow", "Principal": {"AWS": "` + role + `"}, ` + onBucket + `}`
	toOther      = `{"Effect": "Allow", "Principal": {"AWS": "` + other + `"}, ` + onBucket + `}`
	toAccount    = `{"Effect": "Allow", "Principal": {"AWS": "` + account + `"}, ` + onBucket + `}`
	toRoot       = `{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::` + account + `:root"}, ` + onBucket + `}`
	toOtherRoot  = `{"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam::444455556666:root"]}, ` + onBucket + `}`
	toEveryone   = `{"Effect": "Allow", "Principal": "*", ` + onBucket + `}`
	toService    = `{"Effect": "Allow", "Principal": {"Service": "cloudfront.amazonaws.com"}, ` + onBucket + `}`
	notAccount   = `{"Effect": "Deny", "Principal": {"AWS": "` + account + `"}, ` + onBucket + `}`
	notRole      = `{"Effect": "Deny", "Principal": {"AWS": "` + role + `"}, ` + onBucket + `}`
	notInsecure  = `{"Effect": "Deny", "Principal": {"AWS": "*"}, ` + onBucket + `, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}`
	notOldTLS    = `{"Effect": "Deny", "Principal": {"AWS": "*"}, ` + onBucket + `, "Condition": {"NumericLessThan": {"s3:TlsVersion": 1.2}}}`
	notElsewhere = `{"Effect": "Deny", "NotAction": "s3:GetObject", "Resource": "*"}`
)

// These decisions follow AWS's "Policy evaluation logic", within one account and across accounts.
func TestDecisionsFollowEvaluationLogic(t *testing.T) {
	caller, service := iamtest.Request{Principal: role}, iamtest.Request{Service: "cloudfront.amazonaws.com"}
	insecure := iamtest.Request{Principal: role, Context: map[string][]string{"aws:SecureTransport": {"false"}}}
	secure := iamtest.Request{Principal: role,
		Context: map[string][]string{"aws:SecureTransport": {"true"}, "s3:TlsVersion": {"1.3"}}}
	oldTLS := iamtest.Request{Principal: role,
		Context: map[string][]string{"aws:SecureTransport": {"true"}, "s3:TlsVersion": {"1.1"}}}
	foreign, anonymous := iamtest.Request{Principal: other, Account: account}, iamtest.Request{}
	for _, c := range []struct {
		name             string
		request          iamtest.Request
		ofRole, ofBucket string
		want             bool
	}{
		{"nothing", caller, "", "", false},
		{"the role allows", caller, allows, "", true},
		{"the role allows something else", caller, allowsElse, "", false},
		{"the role denies", caller, denies, "", false},
		{"the role allows and denies", caller, allows + "," + denies, "", false},
		{"the role denies and allows", caller, denies + "," + allows, "", false},
		{"the role denies something else", caller, allows + "," + deniesElse, "", true},
		{"everything else is denied", caller, allows + "," + notElsewhere, "", true},
		{"everything else is denied, and nothing is allowed", caller, notElsewhere, "", false},
		{"the bucket allows the role", caller, "", toRole, true},
		{"both allow", caller, allows, toRole, true},
		{"the bucket allows another role", caller, "", toOther, false},
		{"the bucket leaves it to the account", caller, "", toAccount, false},
		{"the bucket leaves it to the account's root", caller, "", toRoot, false},
		{"the bucket leaves it to the account, whose role allows", caller, allows, toRoot, true},
		{"the bucket allows everyone", caller, "", toEveryone, true},
		{"the bucket allows everyone, the role denies", caller, denies, toEveryone, false},
		{"the role allows, the bucket denies the role", caller, allows, notRole, false},
		{"the role allows, the bucket denies the account", caller, allows, notAccount, false},
		{"the bucket allows and denies", caller, "", toRole + "," + notRole, false},
		{"the bucket allows a service", caller, "", toService, false},
		{"without TLS", insecure, allows, notInsecure, false},
		{"over TLS", secure, allows, notInsecure + "," + notOldTLS, true},
		{"over old TLS", oldTLS, allows, notInsecure + "," + notOldTLS, false},
		{"over TLS, allowed only by the bucket", secure, "", toRole + "," + notInsecure, true},
		{"an allowed service", service, "", toService, true},
		{"a service that is not allowed", iamtest.Request{Service: "sns.amazonaws.com"}, "", toService, false},
		{"a service, and everyone is allowed", service, "", toEveryone, true},
		{"a service, and a role is allowed", service, "", toRole, false},
		{"another account, allowed only by its role", foreign, allows, "", false},
		{"another account, allowed only by the bucket", foreign, "", toOther, false},
		{"another account, allowed by both", foreign, allows, toOther, true},
		{"another account, allowed by both through its root", foreign, allows, toOtherRoot, true},
		{"another account, everyone", foreign, allows, toEveryone, true},
		{"another account, and the bucket allows this", foreign, allows, toRoot, false},
		{"another account, allowed by both, and the bucket denies", foreign, allows, toOther + "," +
			strings.Replace(toOther, "Allow", "Deny", 1), false},
		{"an anonymous caller", anonymous, "", toRole, false},
		{"an anonymous caller, and everyone is allowed", anonymous, "", toEveryone, true},
		{"an anonymous caller, and an account is allowed", anonymous, "", toRoot, false},
	} {
		c.request.Action, c.request.Resource = "s3:GetObject", "arn:aws:s3:::b/k"
		decided, err := iamtest.Decide(c.request, policies(t, c.ofRole), policies(t, c.ofBucket))
		if err != nil || decided.Allowed != c.want {
			t.Errorf("%s: %+v %v", c.name, decided, err)
		}
		if decided.Allowed == (decided.Reason != "") || decided.Allowed && len(decided.Because) == 0 {
			t.Errorf("%s: allowed %v because %v, with the reason %q", c.name, decided.Allowed, decided.Because, decided.Reason)
		}
	}
}

func policies(t *testing.T, statements string) []iamtest.Policy {
	t.Helper()
	if statements == "" {
		return nil
	}
	return []iamtest.Policy{policy(t, statements)}
}

// If a policy is not supported, the error names the element.
func TestUnsupportedPoliciesAreRejected(t *testing.T) {
	statement := func(more string) string {
		return `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "a:B", "Resource": "*"` + more + `}]}`
	}
	for text, want := range map[string]string{
		`{`:                         "read a policy",
		`{"Version": "2012-10-17"}`: "statement",
		`{"Version": "2012-10-17", "Statement": []}`:                               "no statements",
		`{"Version": "2012-10-17", "Statement": [], "Extra": 1}`:                   "Extra",
		statement(`, "Else": 1`):                                                   "Else",
		statement(`, "NotPrincipal": "*"`):                                         "NotPrincipal",
		statement(`, "NotAction": "a:C"`):                                          "NotAction",
		statement(`, "NotResource": "a"`):                                          "NotResource",
		statement(`, "Principal": "me"`):                                           "me",
		statement(`, "Principal": {"Federated": "f"}`):                             "Federated",
		statement(`, "Principal": {"CanonicalUser": "f"}`):                         "CanonicalUser",
		statement(`, "Condition": {"StringMatches": {"k:a": "b"}}`):                "StringMatches",
		statement(`, "Condition": {"BinaryEquals": {"k:a": "b"}}`):                 "BinaryEquals",
		statement(`, "Condition": {"NullIfExists": {"k:a": "true"}}`):              "NullIfExists",
		statement(`, "Condition": {"ForSomeValues:StringLike": {"k:a": "b"}}`):     "ForSomeValues",
		statement(`, "Condition": {"stringequals": {"k:a": "b"}}`):                 "stringequals",
		statement(`, "Condition": {"StringEquals": {"k:a": {"b": "c"}}}`):          "list of values",
		`{"Statement": {"Effect": "allow", "Action": "a:B", "Resource": "*"}}`:     "allow",
		`{"Statement": {"Action": "a:B", "Resource": "*"}}`:                        "must be Allow or Deny",
		`{"Statement": {"Effect": "Allow", "Resource": "*"}}`:                      "either Action",
		`{"Statement": {"Effect": "Allow", "Action": "GetItem", "Resource": "*"}}`: "GetItem",
	} {
		if _, err := iamtest.ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want an error with %q", text, err, want)
		}
	}
	// A role policy is not valid as a resource policy, and vice versa.
	r := iamtest.Request{Principal: role, Action: "s3:GetObject", Resource: "arn:aws:s3:::b/k"}
	for _, c := range [][2]string{{toRole, ""}, {"", allows}} {
		if decided, err := iamtest.Decide(r, policies(t, c[0]), policies(t, c[1])); err == nil || decided.Allowed {
			t.Errorf("%v: %v %v", c, decided, err)
		}
	}
}

func policy(t *testing.T, statements string) iamtest.Policy {
	t.Helper()
	p, err := iamtest.ParsePolicy(fmt.Appendf(nil, `{"Version": "2012-10-17", "Statement": [%s]}`, statements))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
