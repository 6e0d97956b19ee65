package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The document also contains the gateway's default address.
func TestDocumentListsModelsOfFamily(t *testing.T) {
	var written bytes.Buffer
	if err := write(&written, "acme", ""); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]struct{ Servers []struct{ URL string } }
	}
	if err := json.Unmarshal(written.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if _, ok := document.Paths["/v1/jobs/acme-2.5"]; !ok {
		t.Errorf("the document has %d paths but not the model's", len(document.Paths))
	}
	if servers := document.Paths["/v1/usage"].Servers; len(servers) != 1 || servers[0].URL != "http://127.0.0.1:8081" {
		t.Errorf("the gateway is at %v", servers)
	}
	if err := write(&written, "", "none.yaml"); err == nil {
		t.Error("a missing catalog was accepted")
	}
}
