package iamtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cutroom/shared/testkit/iamtest"
)

// conditionCases are of "IAM JSON policy elements: Condition operators" and "Multivalued
// context keys" of the IAM User Guide: its examples, its tables, and their edges. The
// values of the policy and of the request are divided by "|"; "-" is a request without
// the key.
const conditionCases = `
StringEquals                 iamuser-admin            iamuser-admin            yes
StringEquals                 iamuser-admin            IAMUSER-ADMIN            no
StringEquals                 iamuser-admin            iamuser                  no
StringEquals                 iamuser-admin            -                        no
StringEquals                 iamuser-*                iamuser-admin            no
StringEquals                 iamuser-*                iamuser-*                yes
StringEquals                 a|b                      b                        yes
StringEquals                 a|b                      c                        no
StringNotEquals              a                        b                        yes
StringNotEquals              a                        a                        no
StringNotEquals              a|b                      b                        no
StringNotEquals              a|b                      c                        yes
StringNotEquals              a                        -                        yes
StringEqualsIgnoreCase       Admin                    aDMIN                    yes
StringEqualsIgnoreCase       Admin                    Admins                   no
StringEqualsIgnoreCase       Admin                    -                        no
StringNotEqualsIgnoreCase    Admin                    aDMIN                    no
StringNotEqualsIgnoreCase    Admin                    user                     yes
StringNotEqualsIgnoreCase    Admin                    -                        yes
StringLike                   home/*                   home/bob                 yes
StringLike                   home/*                   home/                    yes
StringLike                   home/*                   home                     no
StringLike                   home/*                   Home/bob                 no
StringLike                   home/?                   home/b                   yes
StringLike                   home/?                   home/                    no
StringLike                   home/?                   home/bo                  no
StringLike                   *                        anything:at/all          yes
StringLike                   *bob*                    a/bob/b                  yes
StringLike                   *bob*                    a/bo/b                   no
StringLike                   a*b*c                    abbc                     yes
StringLike                   a*b*c                    acb                      no
StringLike                   home/*                   -                        no
StringLike                   t1.*|t2.*|m3.*           m3.large                 yes
StringLike                   t1.*|t2.*|m3.*           m4.large                 no
StringNotLike                home/*                   home/bob                 no
StringNotLike                home/*                   away/bob                 yes
StringNotLike                home/*                   -                        yes
StringNotLike                a*|b*                    bc                       no
StringNotLike                a*|b*                    cc                       yes
StringLikeIfExists           t1.*|t2.*|m3.*           t2.micro                 yes
StringLikeIfExists           t1.*|t2.*|m3.*           x1.large                 no
StringLikeIfExists           t1.*|t2.*|m3.*           -                        yes
StringEqualsIfExists         a                        -                        yes
StringEqualsIfExists         a                        b                        no
StringNotEqualsIfExists      a                        -                        yes
StringNotEqualsIfExists      a                        a                        no
StringNotLikeIfExists        a*                       ab                       no
StringEqualsIgnoreCaseIfExists a                      A                        yes
NumericEquals                10                       10                       yes
NumericEquals                10                       10.0                     yes
NumericEquals                10                       11                       no
NumericEquals                10                       -                        no
NumericEquals                10                       ten                      no
NumericNotEquals             10                       11                       yes
NumericNotEquals             10                       10                       no
NumericNotEquals             10                       -                        yes
NumericNotEquals             10|11                    11                       no
NumericLessThan              1.2                      1.1                      yes
NumericLessThan              1.2                      1.2                      no
NumericLessThan              1.2                      1.3                      no
NumericLessThan              1.2                      -                        no
NumericLessThan              10                       9                        yes
NumericLessThanEquals        10                       10                       yes
NumericLessThanEquals        10                       9                        yes
NumericLessThanEquals        10                       11                       no
NumericLessThanEquals        10                       -                        no
NumericGreaterThan           10                       11                       yes
NumericGreaterThan           10                       10                       no
NumericGreaterThan           10                       100                      yes
NumericGreaterThan           10                       -                        no
NumericGreaterThanEquals     10                       10                       yes
NumericGreaterThanEquals     10                       9                        no
NumericLessThanIfExists      10                       -                        yes
NumericLessThanIfExists      10                       10                       no
NumericGreaterThanEqualsIfExists 10                   -                        yes
DateEquals                   2020-01-01T00:00:01Z     2020-01-01T00:00:01Z     yes
DateEquals                   2020-01-01T00:00:01Z     2020-01-01T00:00:02Z     no
DateEquals                   2020-01-01T00:00:01Z     1577836801               yes
DateEquals                   2020-01-01T01:00:01+01:00 2020-01-01T00:00:01Z    yes
DateEquals                   2020-01-01T00:00:01Z     -                        no
DateNotEquals                2020-01-01T00:00:01Z     2020-01-01T00:00:02Z     yes
DateNotEquals                2020-01-01T00:00:01Z     2020-01-01T00:00:01Z     no
DateNotEquals                2020-01-01T00:00:01Z     -                        yes
DateLessThan                 2020-01-01               2019-12-31T23:59:59Z     yes
DateLessThan                 2020-01-01               2020-01-01T00:00:00Z     no
DateLessThanEquals           2020-01-01               2020-01-01T00:00:00Z     yes
DateLessThanEquals           2020-01-01               2020-01-01T00:00:01Z     no
DateGreaterThan              2020-01-01T00:00:01Z     2020-01-01T00:00:02Z     yes
DateGreaterThan              2020-01-01T00:00:01Z     2020-01-01T00:00:01Z     no
DateGreaterThan              2020-01-01T00:00:01Z     -                        no
DateGreaterThanEquals        2020-01-01T00:00:01Z     2020-01-01T00:00:01Z     yes
DateGreaterThanEquals        1577836801               2020-01-01T00:00:00Z     no
DateLessThanIfExists         2020-01-01               -                        yes
Bool                         false                    false                    yes
Bool                         false                    true                     no
Bool                         true                     true                     yes
Bool                         True                     true                     yes
Bool                         true                     False                    no
Bool                         false                    -                        no
Bool                         true                     -                        no
BoolIfExists                 false                    -                        yes
BoolIfExists                 false                    true                     no
BoolIfExists                 true                     true                     yes
IpAddress                    203.0.113.0/24           203.0.113.7              yes
IpAddress                    203.0.113.0/24           203.0.113.255            yes
IpAddress                    203.0.113.0/24           203.0.114.0              no
IpAddress                    203.0.113.0/24           -                        no
IpAddress                    203.0.113.7              203.0.113.7              yes
IpAddress                    203.0.113.7              203.0.113.8              no
IpAddress                    203.0.113.7/32           203.0.113.7              yes
IpAddress                    203.0.113.0/24|2001:DB8:1234:5678::/64 2001:db8:1234:5678::1 yes
IpAddress                    203.0.113.0/24|2001:DB8:1234:5678::/64 203.0.113.1  yes
IpAddress                    203.0.113.0/24|2001:DB8:1234:5678::/64 2001:db8:1234:5679::1 no
IpAddress                    203.0.113.0/24           nowhere                  no
NotIpAddress                 203.0.113.0/24           203.0.113.7              no
NotIpAddress                 203.0.113.0/24           198.51.100.1             yes
NotIpAddress                 203.0.113.0/24           -                        yes
NotIpAddress                 203.0.113.0/24|198.51.100.0/24 198.51.100.1       no
NotIpAddressIfExists         203.0.113.0/24           -                        yes
IpAddressIfExists            203.0.113.0/24           -                        yes
ArnEquals                    arn:aws:sns:REGION:123456789012:TOPIC-ID arn:aws:sns:REGION:123456789012:TOPIC-ID yes
ArnEquals                    arn:aws:sns:REGION:123456789012:TOPIC-ID arn:aws:sns:REGION:123456789012:TOPIC no
ArnEquals                    arn:aws:sns:REGION:123456789012:TOPIC-ID -        no
ArnEquals                    arn:aws:sns:*:123456789012:TOPIC-? arn:aws:sns:eu-west-1:123456789012:TOPIC-1 yes
ArnLike                      arn:aws:someservice:*:111122223333:finance/* arn:aws:someservice:us-east-2:999999999999:store/abc:111122223333:finance/document.txt no
StringLike                   arn:aws:someservice:*:111122223333:finance/* arn:aws:someservice:us-east-2:999999999999:store/abc:111122223333:finance/document.txt yes
ArnLike                      arn:aws:someservice:*:111122223333:finance/* arn:aws:someservice:us-east-2:111122223333:finance/document.txt yes
ArnLike                      arn:aws:events:*:*:rule/* arn:aws:events:eu-west-1:123456789012:rule/a:b yes
ArnLike                      arn:*                    arn:aws:sns:eu-west-1:123456789012:t no
ArnLike                      arn:aws:sns:*:*:*        arn:aws:sns:eu-west-1:123456789012:t:u yes
ArnLike                      arn:aws:sns:*:*:*        no-arn                   no
ArnLike                      arn:aws:sns:*:*:*        arn:aws:sqs:eu-west-1:123456789012:t no
ArnLike                      arn:aws:s3:::bucket      arn:aws:s3:::bucket      yes
ArnLike                      arn:aws:s3:::bucket      arn:aws:s3:::buckets     no
ArnNotEquals                 arn:aws:s3:::bucket      arn:aws:s3:::bucket      no
ArnNotEquals                 arn:aws:s3:::bucket      arn:aws:s3:::other       yes
ArnNotEquals                 arn:aws:s3:::bucket      -                        yes
ArnNotLike                   arn:aws:s3:::b*          arn:aws:s3:::bucket      no
ArnNotLike                   arn:aws:s3:::b*          arn:aws:s3:::other       yes
ArnNotLike                   arn:aws:s3:::b*          -                        yes
ArnLikeIfExists              arn:aws:s3:::b*          -                        yes
ArnNotLikeIfExists           arn:aws:s3:::b*          arn:aws:s3:::bucket      no
Null                         true                     -                        yes
Null                         true                     2020-01-01               no
Null                         false                    -                        no
Null                         false                    2020-01-01               yes
ForAllValues:StringLike      PostDateTime|Message|Tags PostDateTime|Message    yes
ForAllValues:StringLike      PostDateTime|Message|Tags PostDateTime|UserName   no
ForAllValues:StringLike      PostDateTime|Message|Tags ID                      no
ForAllValues:StringLike      PostDateTime|Message|Tags -                       yes
ForAllValues:StringLike      Post*|Tags               PostDateTime|Tags        yes
ForAllValues:StringEquals    a|b                      a|b                      yes
ForAllValues:StringEquals    a|b                      a|b|c                    no
ForAllValues:StringNotEquals a|b                      c|d                      yes
ForAllValues:StringNotEquals a|b                      c|a                      no
ForAllValues:StringNotEquals a|b                      -                        yes
ForAnyValue:StringLike       ID|PostDateTime          UserName|Message|PostDateTime yes
ForAnyValue:StringLike       ID|PostDateTime          UserName                 no
ForAnyValue:StringLike       ID|PostDateTime          -                        no
ForAnyValue:StringEquals     a|b                      c|b                      yes
ForAnyValue:StringEquals     a|b                      c|d                      no
ForAnyValue:StringNotEquals  a|b                      a|c                      yes
ForAnyValue:StringNotEquals  a|b                      a|b                      no
ForAnyValue:StringNotEquals  a|b                      -                        no
ForAllValues:ArnLike         arn:aws:s3:::b*          arn:aws:s3:::bucket|arn:aws:s3:::b yes
ForAllValues:NumericLessThan 10                       1|9                      yes
ForAllValues:NumericLessThan 10                       1|10                     no
ForAllValues:StringEqualsIfExists a                   -                        yes
ForAnyValue:StringEqualsIfExists a                    -                        yes
ForAnyValue:StringEqualsIfExists a                    b                        no
ForAllValues:Bool            true                     true|true                yes
`

func TestConditions(t *testing.T) {
	for line := range strings.Lines(conditionCases) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		r := iamtest.Request{
			Principal: "arn:aws:iam::111122223333:role/r", Action: "s3:GetObject", Resource: "arn:aws:s3:::b/k",
			Context: map[string][]string{"aws:OtherKey": {"other"}},
		}
		if fields[2] != "-" {
			r.Context["AWS:someKey"] = strings.Split(fields[2], "|")
		}
		condition, err := json.Marshal(map[string]any{fields[0]: map[string]any{"aws:SomeKey": strings.Split(fields[1], "|")}})
		if err != nil {
			t.Fatal(err)
		}
		p := policy(t, `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": `+string(condition)+`}`)
		decided, err := iamtest.Decide(r, []iamtest.Policy{p}, nil)
		if err != nil || decided.Allowed != (fields[3] == "yes") {
			t.Errorf("%s: it holds: %v %v", strings.Join(fields, " "), decided.Allowed, err)
		}
	}
}

// A value alone is a list of one; numbers and booleans are as their text.
func TestConditionValues(t *testing.T) {
	for _, value := range []string{`"10"`, `10`, `["10"]`, `[10]`, `["9", 10]`} {
		p := policy(t, `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"NumericEquals": {"s3:max-keys": `+
			value+`}}}`)
		decided, err := iamtest.Decide(iamtest.Request{Principal: "r", Action: "s3:ListBucket", Resource: "*",
			Context: map[string][]string{"s3:max-keys": {"10"}}}, []iamtest.Policy{p}, nil)
		if err != nil || !decided.Allowed {
			t.Errorf("%s: %v %v", value, decided, err)
		}
	}
}

// All conditions of a statement are to hold, and all keys of an operator.
func TestConditionsTogether(t *testing.T) {
	p := policy(t, `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {
		"StringEquals": {"k:a": ["1", "2"], "k:b": "3"}, "Bool": {"k:c": true}}}`)
	for _, c := range []struct {
		a, b, c string
		want    bool
	}{
		{"1", "3", "true", true}, {"2", "3", "true", true}, {"3", "3", "true", false}, {"1", "4", "true", false},
		{"1", "3", "false", false},
	} {
		decided, err := iamtest.Decide(iamtest.Request{Principal: "r", Action: "a:B", Resource: "*",
			Context: map[string][]string{"k:a": {c.a}, "k:b": {c.b}, "k:c": {c.c}}}, []iamtest.Policy{p}, nil)
		if err != nil || decided.Allowed != c.want {
			t.Errorf("%+v: %v %v", c, decided.Allowed, err)
		}
	}
}

// An operator for one value is not evaluated for a key with several, and the request is
// not allowed.
func TestSeveralValuesForOne(t *testing.T) {
	p := policy(t, `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"k:a": "1"}}}`)
	decided, err := iamtest.Decide(iamtest.Request{Principal: "r", Action: "a:B", Resource: "*",
		Context: map[string][]string{"k:a": {"1", "2"}}}, []iamtest.Policy{p}, nil)
	if err == nil || decided.Allowed {
		t.Errorf("decided %v, the error is %v", decided, err)
	}
}

// policy returns a policy of some statements.
func policy(t *testing.T, statements string) iamtest.Policy {
	t.Helper()
	p, err := iamtest.ParsePolicy(fmt.Appendf(nil, `{"Version": "2012-10-17", "Statement": [%s]}`, statements))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
