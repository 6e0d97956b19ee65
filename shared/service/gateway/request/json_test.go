package request_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
)

var long = strings.Repeat("Once upon a time. ", 500)

// Special characters may appear at any position in a word.
func TestLongTextsAreReadLikeShortOnes(t *testing.T) {
	who := caller(t)
	for _, special := range []string{`\n`, `\"`, `\\`, `\/`, `\t\b\f\r`, "é", "日本", "😀", `\u00e9`, `\ud83d\ude00`, "\u007f", " ", `\\\\\"`} {
		for shift := range 9 {
			text := strings.Repeat("x", shift) + special + long + special + strings.Repeat("y", shift)
			body := `{"model":"plain", "messages" : [ {"role":"user","content":"` + text + `"},{"role":"user","content":[{"type":"text","text":"` +
				text + `"}]}],"max_tokens":9000000,"user":"` + text + `","metadata":{"` + long + `1":"` + text + `","` + long + `2":5}}`
			r, problem := request.Parse(catalog.Chat, []byte(body), who)
			if problem != nil {
				t.Fatalf("%q after %d: %+v", special, shift, problem)
			}
			want := strings.Replace(strings.Replace(body, "9000000", "4096", 1), `"plain"`, `"other"`, 1)
			var got, wanted map[string]any
			sent := r.Body(jsonedit.Quote("other")).Bytes()
			if json.Unmarshal(sent, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil {
				t.Fatalf("%q after %d became %s", special, shift, sent)
			}
			delete(got, "max_tokens")
			delete(wanted, "max_tokens")
			one, _ := json.Marshal(got)
			other, _ := json.Marshal(wanted)
			if string(one) != string(other) || strings.Count(string(sent), text) != 4 {
				t.Errorf("%q after %d became %s", special, shift, sent)
			}
			var counted []string
			r.PromptTexts(func(text []byte) { counted = append(counted, string(text)) })
			var plain string
			if err := json.Unmarshal([]byte(`"`+text+`"`), &plain); err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(counted, ""); strings.Count(all, plain) != 2 {
				t.Errorf("%q after %d: counted were %d texts", special, shift, len(counted))
			}
		}
	}
}

// If a body would still have much text after cutting, it is parsed without cuts.
func TestManyShortTextsAreRead(t *testing.T) {
	who := caller(t)
	short := strings.Repeat(`{"role":"user","content":"short"},`, 10000)
	for name, messages := range map[string]string{
		"first": `{"role":"user","content":"` + long + `"},` + short + `{"role":"user","content":"x"}`,
		"last":  short + `{"role":"user","content":"` + long + `"}`,
	} {
		r, problem := request.Parse(catalog.Chat, []byte(`{"model":"plain","max_tokens":9000000,"messages":[`+messages+`]}`), who)
		if problem != nil {
			t.Fatalf("%s: %+v", name, problem)
		}
		if sent := string(r.Body(jsonedit.Quote("other")).Bytes()); !strings.Contains(sent, messages) || !json.Valid([]byte(sent)) {
			t.Errorf("%s: the messages have changed", name)
		}
	}
}

// Errors have the same messages as in a small body, and correct positions.
func TestErrorsInLargeBodiesHavePositions(t *testing.T) {
	who := caller(t)
	begin := `{"model":"plain","messages":[{"role":"user","content":"` + long + `"},{"role":"user","content":"`
	for _, wrong := range []string{
		"\n", "\x00", "\x1f", "\xff", "\xc3(", "\xed\xa0\x80", `\x`, `\ud800`, `\u12`, `",`, `"}{`, `"]`,
	} {
		for _, text := range []string{wrong, long + wrong, wrong + long, long + wrong + long} {
			body := begin + text + `"}]}`
			_, problem := request.Parse(catalog.Chat, []byte(body), who)
			if problem == nil || problem.Code != "invalid_json" {
				t.Fatalf("%q: %+v", wrong, problem)
			}
			// The four-digit escape makes the parser check the same body without cuts.
			plain := strings.ReplaceAll(body, "Once", `\u004fnce`)
			_, want := request.Parse(catalog.Chat, []byte(plain), who)
			if want == nil || problem.Code != want.Code || problem.Param != want.Param ||
				strings.Contains(problem.Message, "at byte") != strings.Contains(want.Message, "at byte") {
				t.Errorf("%q: %+v, want %+v", wrong, problem, want)
			}
		}
	}
	twice := `{"model":"plain","messages":[{"role":"user","content":"` + long + `","content":"` + long + `"}]}`
	_, problem := request.Parse(catalog.Chat, []byte(twice), who)
	if problem == nil || problem.Param != "messages[0].content" {
		t.Errorf("a duplicate field: %+v", problem)
	}
	_, problem = request.Parse(catalog.Chat, []byte(strings.Replace(begin+`x"}]}`, `"}]}`, `"}]]`, 1)), who)
	if want := "at byte " + itoa(len(begin)+4) + "."; problem == nil || !strings.HasSuffix(problem.Message, want) {
		t.Errorf("%+v, want %q", problem, want)
	}
}

func itoa(n int) string { text, _ := json.Marshal(n); return string(text) }

// A reader accepts the same bodies as another parser, and finds the same tokens.
func FuzzReader(f *testing.F) {
	many := "{"
	for i := range 40 {
		many += `"` + itoa(i) + `":[[],{}],`
	}
	for _, seed := range []string{
		`{"a":"b","c":["d\n","e\\",{"f" : "g"}]}`, `{"aaaaaaaaaaaa":"bbbbbbbbbbbbbbbb\"c","dd":5}`, `["éééé",""]`, `{"a":"\ud83d\ude00"}`,
		`{"a":"b","\u0061":"c"}`, `"abc`, `{"a":"` + "\x01" + `"}`, `{"a":["\u0041","\ud800","\udc00"]}`, `{"a":"` + "\xff" + `"}`, `{"a" "b"}`, `{"":"","c"""`,
		`{"":"","c","`, `{"a":"b"}"c"`, `{"a":[1,2,"x"`, ` { "a" : -1.5e+3 , "b" : [ true , null , false ] } `, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.1}`,
		`{"a":"` + long[:200] + `\u12g4"}`, `{"a":"` + long[:200] + "é" + long[:99] + "\x1f" + `"}`, `{"a":"` + long[:200] + `\q"}`, `{"a":[,]}`, `{"a":{"b":1,}}`,
		`{"a":` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + "}", many + `"7":0}`, many + `"40":0}`,
		`{"a":[` + strings.Repeat(`{"b":[]},`, 600) + `0]}`,
	} {
		f.Add([]byte(seed), 0)
		f.Add([]byte(seed), 100)
	}
	f.Fuzz(func(t *testing.T, body []byte, depth int) {
		want, deep := tokensOf(body, depth)
		for _, known := range []bool{false, true} {
			if got := request.Walk(body, depth, known); got != want && !(deep && got == "") {
				t.Errorf("%q to the depth %d (%t):\n%s\nwant\n%s", body, depth, known, got, want)
			}
		}
	})
}

// tokensOf is independent of the gateway's code. deep means that the body is nested too deep for it.
func tokensOf(body []byte, depth int) (said string, deep bool) {
	if checked := jsontext.NewDecoder(bytes.NewReader(body)); checked.PeekKind() != '{' || !jsontext.Value(body).IsValid() {
		return "", false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		kind := decoder.PeekKind()
		var err error
		if opens := kind == '{' || kind == '['; opens && decoder.StackDepth() > depth {
			_, err = decoder.ReadValue()
		} else {
			_, err = decoder.ReadToken()
		}
		if err != nil {
			return said, strings.Count(string(body), "[")+strings.Count(string(body), "{") > jsonedit.MaxDepth
		}
		said += fmt.Sprintf("%c to %d\n", kind, decoder.InputOffset())
	}
}
