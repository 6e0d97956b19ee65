package dynamo_test

import (
	"slices"
	"testing"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
)

func TestSignersAreStoredOnce(t *testing.T) {
	cloud := local.Cloud(t)
	signers := dynamo.NewSigners(dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "jobs"))
	is := func(want ...string) {
		t.Helper()
		if got, err := signers.Certificates(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("the certificates are %q (%v), want %q", got, err, want)
		}
	}
	is()
	for _, certificates := range []string{"of today", "of today", "of before"} {
		if err := signers.Add(t.Context(), certificates); err != nil {
			t.Fatal(err)
		}
	}
	is("of before", "of today")
}

func TestSignerCallsMatchDocumentation(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	signers := dynamo.NewSigners(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "jobs"))
	asDocumented(t, proxy, "Signers", calls{
		{"Add", func() error { return signers.Add(t.Context(), "of today") }},
		{"Certificates", func() error { _, err := signers.Certificates(t.Context()); return err }},
	})
}
