package cost

import (
	"strings"
	"testing"

	"cutroom/shared/adapter/dynamo"
)

func text(s string) map[string]any { return map[string]any{"S": s} }

// The sizes are those of the DynamoDB Developer Guide, "DynamoDB item sizes and formats".
func TestSizeOf(t *testing.T) {
	for _, c := range []struct {
		name string
		of   record
		size int
	}{
		{"nothing", nil, 0},
		{"text, in bytes of UTF-8", record{"name": text("é")}, 6},
		{"a number, a byte for two digits and one", record{"n": map[string]any{"N": "1234"}}, 4},
		{"zeros on either side are left out", record{"n": map[string]any{"N": "0.0012000"}}, 3},
		{"below zero, one more", record{"n": map[string]any{"N": "-12"}}, 4},
		{"truth", record{"b": map[string]any{"BOOL": true}}, 2},
		{"bytes", record{"b": map[string]any{"B": "AAAA"}}, 4},
		{"a set", record{"s": map[string]any{"SS": []any{"ab", "c"}}}, 4},
		{"a list, three and one for each", record{"l": map[string]any{"L": []any{text("ab"), text("c")}}}, 9},
		{"a map, three and one for each", record{"m": map[string]any{"M": map[string]any{"k": text("v")}}}, 7},
	} {
		if got := sizeOf(c.of); got != c.size {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.size)
		}
	}
}

func TestUnits(t *testing.T) {
	small, large := record{"id": text("a")}, record{"id": text("a"), "x": text(strings.Repeat("x", 1500))}
	if got := writes(small, large); got != 2 {
		t.Errorf("a write that makes 1.5 KB takes %g units", got)
	}
	if got := writes(large, nil); got != 2 {
		t.Errorf("a delete of 1.5 KB takes %g units", got)
	}
}

func TestIndexWrites(t *testing.T) {
	table := dynamo.Table{PartitionKey: "id", Indexes: []dynamo.Index{{Name: "i", PartitionKey: "account", SortKey: "id"}}}
	plain, in := record{"id": text("a")}, record{"id": text("a"), "account": text("x")}
	changed, moved := record{"id": text("a"), "account": text("x"), "n": text("1")}, record{"id": text("a"),
		"account": text("y")}
	for _, c := range []struct {
		name          string
		before, after record
		units         float64
	}{
		{"not in it", nil, plain, 0},
		{"comes into it", nil, in, 1},
		{"stays as it is", in, in, 0},
		{"changes", in, changed, 1},
		{"changes its key", in, moved, 2},
		{"goes", in, nil, 1},
	} {
		if got := indexWrites(table, c.before, c.after); got != c.units {
			t.Errorf("%s: %g units, want %g", c.name, got, c.units)
		}
	}
	table.Indexes[0].Includes = []string{"m"}
	if got := indexWrites(table, in, changed); got != 0 {
		t.Errorf("a change of what an index does not hold takes %g units", got)
	}
	included := record{"id": text("a"), "account": text("x"), "m": text("1")}
	if got := indexWrites(table, in, included); got != 1 {
		t.Errorf("a change of what an index includes takes %g units", got)
	}
}
