package demomodel_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func ask(t *testing.T, url, body string) (int, string) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestSimilarTextsHaveNearbyVectors(t *testing.T) {
	server := newServer(t)
	var embedded struct {
		Data  []struct{ Embedding []float64 }
		Usage struct {
			Tokens int `json:"total_tokens"`
		}
	}
	status, text := ask(t, server.URL+"/v1/embeddings",
		`{"model":"m","input":["a red fox","the red fox runs","quarterly tax report"],"dimensions":64}`)
	if err := json.Unmarshal([]byte(text), &embedded); err != nil || status != 200 || len(embedded.Data) != 3 ||
		len(embedded.Data[0].Embedding) != 64 || embedded.Usage.Tokens == 0 {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	near := func(i, j int) (sum float64) {
		for k := range embedded.Data[i].Embedding {
			sum += embedded.Data[i].Embedding[k] * embedded.Data[j].Embedding[k]
		}
		return sum
	}
	if near(0, 1) <= near(0, 2) || near(0, 0) < 0.999 || near(0, 0) > 1.001 {
		t.Errorf("the distances are %v, %v and %v", near(0, 0), near(0, 1), near(0, 2))
	}
	for _, c := range []struct{ route, body, want string }{
		{"embeddings", `{"model":"m","input":"x","encoding_format":"base64","dimensions":1}`, `"embedding":"AA`},
		{"embeddings", `{"model":"m","input":[1,2]}`, `"index":0`},
		{"embeddings", `{"model":"m","input":[[1],[2]]}`, `"index":1`},
		{"embeddings", `{"model":"m","input":""}`, `"index":0`},
	} {
		if status, text := ask(t, server.URL+"/v1/"+c.route, c.body); status != 200 || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s", c.route, c.body, status, text)
		}
	}
	for _, c := range []struct{ route, body string }{
		{"embeddings", `{"input":[]}`}, {"embeddings", `{"input":5}`}, {"embeddings", `{"input":"x","dimensions":5000}`},
		{"embeddings", `{"input":[999999999]}`},
	} {
		if status, text := ask(t, server.URL+"/v1/"+c.route, c.body); status != 400 {
			t.Errorf("%s %s: %d %s", c.route, c.body, status, text)
		}
	}
}
