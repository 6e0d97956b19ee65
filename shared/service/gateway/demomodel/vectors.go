package demomodel

import (
	"bytes"
	"cmp"
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
	// maxDimensions and maxTexts limit one call.
	maxDimensions = 4096
	maxTexts      = 2048
)

// vector hashes each word of a text to one dimension and counts it there. The vector has the
// length 1. Texts with words in common are near each other.
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

// decoded returns the texts and decodes token ids.
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

// readUsage is the usage of a call that reads texts.
func (s *Server) readUsage(texts ...string) object {
	n := 0
	for _, text := range texts {
		n += s.config.Tokenizer.Count(text)
	}
	return object{"prompt_tokens": n, "total_tokens": n}
}

// embeddings answers with a vector for each text.
func (s *Server) embeddings(w http.ResponseWriter, body []byte) error {
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
		data[i] = object{"object": "embedding", "index": i, "embedding": embedding}
	}
	sendJSON(w, http.StatusOK, object{
		"object": "list", "model": request.Model, "data": data, "usage": s.readUsage(texts...),
	})
	return nil
}

// rerank answers with the documents by how many words they have in common with the query.
func (s *Server) rerank(w http.ResponseWriter, body []byte) error {
	var q struct {
		Model           string    `json:"model"`
		Query           string    `json:"query"`
		Documents       []content `json:"documents"`
		TopN            int       `json:"top_n"`
		ReturnDocuments *bool     `json:"return_documents"`
	}
	if err := decode(body, &q); err != nil {
		return err
	}
	if len(q.Documents) == 0 || len(q.Documents) > maxTexts {
		return refuse("documents", fmt.Sprintf("Expected 1 to %d documents.", maxTexts))
	}
	about, read := vector(q.Query, dimensions), []string{q.Query}
	results := make([]object, len(q.Documents))
	for i, d := range q.Documents {
		text := string(d)
		results[i] = object{"index": i, "relevance_score": similarity(about, vector(text, dimensions))}
		if q.ReturnDocuments == nil || *q.ReturnDocuments {
			results[i]["document"] = object{"text": text}
		}
		read = append(read, text)
	}
	slices.SortStableFunc(results, func(a, b object) int {
		return cmp.Compare(b["relevance_score"].(float32), a["relevance_score"].(float32))
	})
	if q.TopN > 0 {
		results = results[:min(q.TopN, len(results))]
	}
	sendJSON(w, http.StatusOK, object{
		"id": "rerank-" + s.config.NewID(), "model": q.Model, "results": results, "usage": s.readUsage(read...),
	})
	return nil
}

// score answers with how many words pairs of texts have in common: one text with each of
// many, or each with its counterpart.
func (s *Server) score(w http.ResponseWriter, body []byte) error {
	var q struct {
		Model string `json:"model"`
		Text1 inputs `json:"text_1"`
		Text2 inputs `json:"text_2"`
	}
	if err := decode(body, &q); err != nil {
		return err
	}
	first, err := s.decoded(q.Text1, "text_1")
	if err != nil {
		return err
	}
	second, err := s.decoded(q.Text2, "text_2")
	if err != nil {
		return err
	}
	if len(first) != 1 && len(first) != len(second) {
		return refuse("text_1", "text_1 is one text, or as many as text_2.")
	}
	data := make([]any, len(second))
	for i, text := range second {
		near := similarity(vector(first[min(i, len(first)-1)], dimensions), vector(text, dimensions))
		data[i] = object{"object": "score", "index": i, "score": near}
	}
	sendJSON(w, http.StatusOK, object{
		"id": "score-" + s.config.NewID(), "object": "list", "created": s.config.Now().Unix(), "model": q.Model,
		"data": data, "usage": s.readUsage(append(first, second...)...),
	})
	return nil
}
