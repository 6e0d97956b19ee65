package demomodel

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strings"
)

const (
	// dimensions is how long an embedding is, unless the request says otherwise.
	dimensions = 256
	// maxDimensions and maxTexts bound what one call makes.
	maxDimensions = 4096
	maxTexts      = 2048
)

// vector counts the words of a text in as many places as there are dimensions,
// with a length of 1. Texts with words in common are near each other, and that is
// all it knows.
func vector(text string, size int) []float32 {
	v := make([]float32, size)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return c < 'a' || c > 'z' && c < 0x80
	}) {
		hash := fnv.New64a()
		hash.Write([]byte(word))
		sum := hash.Sum64()
		if at := int(sum % uint64(size)); sum>>63 == 0 {
			v[at]++
		} else {
			v[at]--
		}
	}
	norm := math.Sqrt(float64(similarity(v, v)))
	if norm == 0 {
		v[0], norm = 1, 1 // a text without words
	}
	for i := range v {
		v[i] /= float32(norm)
	}
	return v
}

// similarity is the cosine of the angle between two vectors of length 1.
func similarity(a, b []float32) float32 {
	var sum float32
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// inputs are texts, sent as one, as an array, or as token ids.
type inputs struct {
	texts []string
	ids   [][]int
}

// UnmarshalJSON reads every form.
func (in *inputs) UnmarshalJSON(text []byte) error {
	var one string
	var ids []int
	switch {
	case json.Unmarshal(text, &one) == nil:
		in.texts = []string{one}
	case json.Unmarshal(text, &in.texts) == nil:
	case json.Unmarshal(text, &ids) == nil:
		in.texts, in.ids = nil, [][]int{ids}
	default:
		in.texts = nil
		return json.Unmarshal(text, &in.ids)
	}
	return nil
}

// decoded returns the texts, those of token ids too.
func (s *Server) decoded(in inputs, field string) ([]string, error) {
	for _, ids := range in.ids {
		text, err := s.config.Tokenizer.Decode(ids...)
		if err != nil {
			return nil, refuse(field, "A token id is not in the vocabulary.")
		}
		in.texts = append(in.texts, text)
	}
	if len(in.texts) == 0 || len(in.texts) > maxTexts {
		return nil, refuse(field, fmt.Sprintf("Expected 1 to %d texts.", maxTexts))
	}
	return in.texts, nil
}

// count counts the tokens of texts.
func (s *Server) count(texts ...string) (n int) {
	for _, text := range texts {
		n += s.config.Tokenizer.Count(text)
	}
	return n
}

// readUsage is the usage of a call that generates nothing.
func readUsage(tokens int) map[string]int {
	return map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}
}

// embeddings answers with a vector for each text.
func (s *Server) embeddings(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var request struct {
		Model      string `json:"model"`
		Input      inputs `json:"input"`
		Encoding   string `json:"encoding_format"`
		Dimensions int    `json:"dimensions"`
	}
	if err := decode(body, &request); err != nil {
		return err
	}
	texts, err := s.decoded(request.Input, "input")
	if err != nil {
		return err
	}
	size := dimensions
	if request.Dimensions != 0 {
		size = request.Dimensions
	}
	if size < 1 || size > maxDimensions {
		return refuse("dimensions", fmt.Sprintf("dimensions is 1 to %d.", maxDimensions))
	}
	data := make([]any, len(texts))
	for i, text := range texts {
		var embedding any = vector(text, size)
		if request.Encoding == "base64" {
			var out bytes.Buffer
			_ = binary.Write(&out, binary.LittleEndian, embedding) // a slice of numbers always writes
			embedding = base64.StdEncoding.EncodeToString(out.Bytes())
		}
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": embedding}
	}
	sendJSON(w, http.StatusOK, map[string]any{
		"object": "list", "model": request.Model, "data": data, "usage": readUsage(s.count(texts...)),
	})
	return nil
}

// document is what is ranked: a text, or an object with one.
type document struct {
	Text string `json:"text"`
}

// UnmarshalJSON reads both forms.
func (d *document) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &d.Text) == nil {
		return nil
	}
	type plain document
	return json.Unmarshal(text, (*plain)(d))
}

// rerank answers with the documents by how much they have in common with the
// query.
func (s *Server) rerank(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var request struct {
		Model           string     `json:"model"`
		Query           string     `json:"query"`
		Documents       []document `json:"documents"`
		TopN            int        `json:"top_n"`
		ReturnDocuments *bool      `json:"return_documents"`
	}
	if err := decode(body, &request); err != nil {
		return err
	}
	if len(request.Documents) == 0 || len(request.Documents) > maxTexts {
		return refuse("documents", fmt.Sprintf("Expected 1 to %d documents.", maxTexts))
	}
	type result struct {
		Index    int       `json:"index"`
		Score    float32   `json:"relevance_score"`
		Document *document `json:"document,omitempty"`
	}
	about, used := vector(request.Query, dimensions), s.count(request.Query)
	results := make([]result, len(request.Documents))
	for i := range request.Documents {
		d := &request.Documents[i]
		results[i] = result{Index: i, Score: similarity(about, vector(d.Text, dimensions)), Document: d}
		if request.ReturnDocuments != nil && !*request.ReturnDocuments {
			results[i].Document = nil
		}
		used += s.count(d.Text)
	}
	slices.SortStableFunc(results, func(a, b result) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	if request.TopN > 0 {
		results = results[:min(request.TopN, len(results))]
	}
	sendJSON(w, http.StatusOK, map[string]any{
		"id": "rerank-" + s.config.NewID(), "model": request.Model, "results": results, "usage": readUsage(used),
	})
	return nil
}

// score answers with how much pairs of texts have in common: one with each of
// many, or each with its counterpart.
func (s *Server) score(w http.ResponseWriter, _ *http.Request, body []byte) error {
	var request struct {
		Model string `json:"model"`
		Text1 inputs `json:"text_1"`
		Text2 inputs `json:"text_2"`
	}
	if err := decode(body, &request); err != nil {
		return err
	}
	first, err := s.decoded(request.Text1, "text_1")
	if err != nil {
		return err
	}
	second, err := s.decoded(request.Text2, "text_2")
	if err != nil {
		return err
	}
	if len(first) != 1 && len(first) != len(second) {
		return refuse("text_1", "text_1 is one text, or as many as text_2.")
	}
	data := make([]any, len(second))
	for i, text := range second {
		with := first[0]
		if len(first) > 1 {
			with = first[i]
		}
		data[i] = map[string]any{
			"object": "score", "index": i, "score": similarity(vector(with, dimensions), vector(text, dimensions)),
		}
	}
	sendJSON(w, http.StatusOK, map[string]any{
		"id": "score-" + s.config.NewID(), "object": "list", "created": s.config.Now().Unix(), "model": request.Model,
		"data": data, "usage": readUsage(s.count(first...) + s.count(second...)),
	})
	return nil
}
