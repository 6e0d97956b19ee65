package demomodel

import (
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
	dimensions    = 256 // default size of an embedding
	maxDimensions = 4096
	maxTexts      = 2048
	// maxNumbers limits the numbers in a response: texts times dimensions.
	maxNumbers = maxTexts * dimensions
)

// vector hashes a text's words into dimensions and normalizes the sum to length 1.
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
	norm := float32(math.Sqrt(float64(product(v, v))))
	if norm == 0 {
		v[0], norm = 1, 1 // the text has no words
	}
	for i := range v {
		v[i] /= norm
	}
	return v
}

func product(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// similarities returns the cosine similarities of pairs of texts, or of one text with each of several.
func similarities(first, second []string) []float32 {
	found := make([]float32, len(second))
	var about []float32
	for i, text := range second {
		if i < len(first) {
			about = vector(first[i], dimensions)
		}
		found[i] = product(about, vector(text, dimensions))
	}
	return found
}

// inputs unmarshals strings or token ids, alone or in an array.
type inputs struct {
	texts []string
	ids   [][]int
}

func (in *inputs) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		text = []byte("[" + string(text) + "]")
	}
	if json.Unmarshal(text, &in.texts) == nil {
		return nil
	}
	in.texts = nil
	var ids []int
	if json.Unmarshal(text, &ids) != nil {
		return json.Unmarshal(text, &in.ids)
	}
	in.ids = [][]int{ids}
	return nil
}

// decoded returns the texts, including texts decoded from token ids.
func (s *Server) decoded(in inputs, field string) ([]string, error) {
	for _, ids := range in.ids {
		text, err := s.config.Tokenizer.Decode(ids...)
		if err != nil {
			return nil, reject(field, "A token id is not in the vocabulary.")
		}
		in.texts = append(in.texts, text)
	}
	return in.texts, checkTexts(field, in.texts)
}

func checkTexts(field string, texts []string) error {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if len(texts) == 0 || len(texts) > maxTexts || size > maxText {
		return reject(field, fmt.Sprintf("Expected 1 to %d texts of at most %d bytes in total.", maxTexts, maxText))
	}
	return nil
}

func (s *Server) readUsage(texts ...string) object {
	n := 0
	for _, text := range texts {
		n += s.config.Tokenizer.Count(text)
	}
	return object{"prompt_tokens": n, "total_tokens": n}
}

type embeddingRequest struct {
	Model      string `json:"model"`
	Input      inputs `json:"input"`
	Encoding   string `json:"encoding_format"`
	Dimensions int    `json:"dimensions"`
}

func (s *Server) embeddings(w http.ResponseWriter, q *embeddingRequest) (object, error) {
	texts, err := s.decoded(q.Input, "input")
	if err != nil {
		return nil, err
	}
	size := cmp.Or(q.Dimensions, dimensions)
	if size < 1 || size > maxDimensions {
		return nil, reject("dimensions", fmt.Sprintf("dimensions must be from 1 to %d.", maxDimensions))
	}
	if len(texts)*size > maxNumbers {
		return nil, reject("dimensions", fmt.Sprintf("The texts times the dimensions must be at most %d.", maxNumbers))
	}
	answer := object{"object": "list", "model": q.Model, "usage": s.readUsage(texts...)}
	sendList(w, answer, "data", len(texts), func(i int) object {
		embedding := vector(texts[i], size)
		item := object{"object": "embedding", "index": i, "embedding": embedding}
		if q.Encoding == "base64" {
			encoded, _ := binary.Append(nil, binary.LittleEndian, embedding) // encoding numbers cannot fail
			item["embedding"] = base64.StdEncoding.EncodeToString(encoded)
		}
		return item
	})
	return nil, nil
}

type rerankRequest struct {
	Model     string    `json:"model"`
	Query     string    `json:"query"`
	Documents []content `json:"documents"`
	TopN      int       `json:"top_n"`
	Return    *bool     `json:"return_documents"`
}

func (s *Server) rerank(_ http.ResponseWriter, q *rerankRequest) (object, error) {
	var texts []string
	for _, d := range q.Documents {
		texts = append(texts, string(d))
	}
	if err := cmp.Or(checkTexts("documents", texts), checkTexts("query", []string{q.Query})); err != nil {
		return nil, err
	}
	results := make([]object, len(texts))
	for i, near := range similarities([]string{q.Query}, texts) {
		results[i] = object{"index": i, "relevance_score": near}
		if q.Return == nil || *q.Return {
			results[i]["document"] = object{"text": texts[i]}
		}
	}
	slices.SortStableFunc(results, func(a, b object) int {
		return cmp.Compare(b["relevance_score"].(float32), a["relevance_score"].(float32))
	})
	if q.TopN > 0 {
		results = results[:min(q.TopN, len(results))]
	}
	return object{"id": "rerank-" + s.config.NewID(), "model": q.Model, "results": results,
		"usage": s.readUsage(append(texts, q.Query)...)}, nil
}

type scoreRequest struct {
	Model string `json:"model"`
	Text1 inputs `json:"text_1"`
	Text2 inputs `json:"text_2"`
}

func (s *Server) score(_ http.ResponseWriter, q *scoreRequest) (object, error) {
	first, err := s.decoded(q.Text1, "text_1")
	second, otherErr := s.decoded(q.Text2, "text_2")
	if err = cmp.Or(err, otherErr); err != nil {
		return nil, err
	}
	if len(first) != 1 && len(first) != len(second) {
		return nil, reject("text_1", "text_1 must be one text, or as many texts as text_2.")
	}
	data := make([]object, len(second))
	for i, near := range similarities(first, second) {
		data[i] = object{"object": "score", "index": i, "score": near}
	}
	return object{"id": "score-" + s.config.NewID(), "object": "list", "created": s.config.Now().Unix(), "model": q.Model,
		"data": data, "usage": s.readUsage(append(first, second...)...)}, nil
}
