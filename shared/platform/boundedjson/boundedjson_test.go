package boundedjson_test

import (
	"errors"
	"strings"
	"testing"

	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/testkit/alloctest"
)

func TestValuesAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"few":                {`{"a":[1,2,3]}`, false},
		"as many as allowed": {`[1,2,3,4,5,6,7,8,9]`, false},
		"one more":           {`[1,2,3,4,5,6,7,8,9,0,1]`, true},
		"members":            {`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`, true},
		"nested":             {`[[[[[[[[[[[]]]]]]]]]]]`, true},
		"inside a string":    {`"[[[[[[[[[[,,,,,,,,\"::::::::\\"`, false},
		"after a string":     {`["\\",1,2,3,4,5,6,7,8,9,0]`, true},
		"without an end":     {`["` + strings.Repeat(",", 100), false},
	} {
		t.Run(name, func(t *testing.T) {
			var into any
			err := boundedjson.Unmarshal([]byte(c.text), 10, &into)
			var limit *boundedjson.LimitError
			if errors.As(err, &limit) != c.refused {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestReadLimitsBytes(t *testing.T) {
	var into any
	var limit *boundedjson.LimitError
	if err := boundedjson.Read(strings.NewReader(`[1]`), 3, 10, &into); err != nil {
		t.Error(err)
	}
	if err := boundedjson.Read(strings.NewReader(`[1] `), 3, 10, &into); !errors.As(err, &limit) {
		t.Errorf("error %v", err)
	}
}

func TestDecodingUsesLittleMemory(t *testing.T) {
	for name, text := range map[string]string{
		"refused":  "[" + strings.Repeat("{},", 1<<20) + "{}]",
		"accepted": "[" + strings.Repeat("{},", 9_000) + "{}]" + strings.Repeat(" ", 1<<20),
		"deep":     strings.Repeat("[", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			var into any
			alloctest.Check(t, len(text), func() {
				_ = boundedjson.Read(strings.NewReader(text), 4<<20, 20_000, &into)
			})
		})
	}
}
