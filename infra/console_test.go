package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// Only CloudFront can read the console's bucket, and the page may call only this deployment.
func TestConsoleBucketIsPrivate(t *testing.T) {
	s := describe(t, map[string]any{"worker": "none", "watch": "off", "console": "true", "family": "acme"})
	made := parse(t, s.Stack)
	for _, control := range made.of(t, "AWS::CloudFront::OriginAccessControl") {
		if at(control.Properties, "OriginAccessControlConfig", "SigningBehavior") != "always" {
			t.Errorf("CloudFront does not sign its reads: %v", control.Properties)
		}
	}
	for _, distribution := range made.of(t, "AWS::CloudFront::Distribution") {
		behavior := at(distribution.Properties, "DistributionConfig", "DefaultCacheBehavior")
		if at(behavior, "ViewerProtocolPolicy") != "redirect-to-https" ||
			at(distribution.Properties, "DistributionConfig", "DefaultRootObject") != "index.html" {
			t.Errorf("the distribution is %v", distribution.Properties)
		}
	}
	for _, headers := range made.of(t, "AWS::CloudFront::ResponseHeadersPolicy") {
		text, err := json.Marshal(
			at(headers.Properties, "ResponseHeadersPolicyConfig", "SecurityHeadersConfig", "ContentSecurityPolicy"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"default-src 'none'; script-src 'self'", "connect-src 'self' https://",
			".execute-api.", ".s3.", "frame-ancestors 'none'"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("the policy lacks %s: %s", part, text)
			}
		}
	}

	// The files are copied unchanged, and the settings contain the URLs.
	assembly := awscdk.App_Of(s.Stack).Synth(nil)
	page, err := filepath.Glob(filepath.Join(*assembly.Directory(), "asset.*", "index.html"))
	if err != nil || len(page) != 1 {
		t.Fatalf("the page is in %v, %v", page, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(page[0]), "theme.css")); err != nil {
		t.Error(err)
	}
	settings, _ := filepath.Glob(filepath.Join(*assembly.Directory(), "asset.*", "config.json"))
	if len(settings) != 1 {
		t.Fatalf("the settings are in %v", settings)
	}
	text, err := os.ReadFile(settings[0])
	if err != nil || !strings.Contains(string(text), `"id":"acme-2.5"`) ||
		!strings.Contains(string(text), `"base_url":"https://<<marker:`) {
		t.Errorf("the settings are %s, %v", text, err)
	}
}

func TestConsoleIsOptional(t *testing.T) {
	made := synthesize(t, map[string]any{"worker": "none", "watch": "off"})
	made.ResourceCountIs(jsii.String("AWS::CloudFront::Distribution"), jsii.Number(0))
	if _, err := readOptions(
		map[string]any{"consoleDomain": "console.example.com",
			"consoleCertificate": "arn:aws:acm:us-east-1:123456789012:certificate/1"}); err == nil ||
		!strings.Contains(err.Error(), "consoleDomain requires console=true") {
		t.Errorf("a name without a console: %v", err)
	}
}
