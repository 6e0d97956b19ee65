package cost

import (
	"encoding/base64"
	"math"
	"reflect"
	"strings"

	"cutroom/shared/adapter/dynamo"
)

// record is an item of DynamoDB as it is on the wire: attributes by their names, each an
// object of its type and value. A nil record is no item.
type record map[string]any

// sizeOf returns the size of a record in bytes, as DynamoDB counts it (DynamoDB Developer
// Guide, "DynamoDB item sizes and formats").
func sizeOf(r record) int {
	size := 0
	for name, value := range r {
		size += len(name) + valueSize(value)
	}
	return size
}

func valueSize(value any) int {
	typed, _ := value.(map[string]any)
	for kind, v := range typed {
		switch v := v.(type) {
		case string:
			switch kind {
			case "N":
				return numberSize(v)
			case "B":
				return base64.StdEncoding.DecodedLen(len(v))
			}
			return len(v)
		case []any:
			return listSize(kind, v)
		case map[string]any: // a map
			return sizeOf(v) + 3 + len(v)
		}
	}
	return 1 // a boolean or null
}

// listSize returns the size of a list or a set.
func listSize(kind string, values []any) int {
	size := 0
	for _, v := range values {
		switch text, _ := v.(string); kind {
		case "L":
			size += valueSize(v) + 1
		case "NS":
			size += numberSize(text)
		case "BS":
			size += base64.StdEncoding.DecodedLen(len(text))
		default:
			size += len(text)
		}
	}
	if kind == "L" {
		size += 3
	}
	return size
}

// numberSize returns a byte for each two significant digits, and one or two more.
func numberSize(number string) int {
	digits := strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, number), "0")
	size := (len(digits)+1)/2 + 1
	if strings.HasPrefix(number, "-") {
		size++
	}
	return size
}

// reads returns the read units of a read of so many bytes.
func reads(bytes int, consistent bool) float64 {
	units := math.Max(1, math.Ceil(float64(bytes)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// writes returns the write units of a write that turned before into after: by the larger
// of the two.
func writes(before, after record) float64 {
	return kilobytes(max(sizeOf(before), sizeOf(after)))
}

func kilobytes(bytes int) float64 { return math.Max(1, math.Ceil(float64(bytes)/1024)) }

// indexWrites returns the write units of a write on the indexes of a table (DynamoDB
// Developer Guide, "Provisioned throughput considerations for Global Secondary Indexes").
func indexWrites(table dynamo.Table, before, after record) float64 {
	units := 0.0
	for _, index := range table.Indexes {
		old, now := projected(table, index, before), projected(table, index, after)
		switch {
		case old == nil && now == nil, reflect.DeepEqual(old, now):
		case old != nil && now != nil && sameKey(table, index, old, now):
			units += writes(old, now)
		default:
			if old != nil {
				units += kilobytes(sizeOf(old))
			}
			if now != nil {
				units += kilobytes(sizeOf(now))
			}
		}
	}
	return units
}

// projected returns what an index holds of a record; nil if the record is not in it.
func projected(table dynamo.Table, index dynamo.Index, r record) record {
	held := record{}
	for _, name := range keyNames(table, index) {
		value, ok := r[name]
		if !ok {
			return nil
		}
		held[name] = value
	}
	if len(index.Includes) == 0 {
		return r
	}
	for _, name := range index.Includes {
		if value, ok := r[name]; ok {
			held[name] = value
		}
	}
	return held
}

func sameKey(table dynamo.Table, index dynamo.Index, a, b record) bool {
	for _, name := range keyNames(table, index) {
		if !reflect.DeepEqual(a[name], b[name]) {
			return false
		}
	}
	return true
}

func keyNames(table dynamo.Table, index dynamo.Index) []string {
	var names []string
	for _, name := range []string{index.PartitionKey, index.SortKey, table.PartitionKey, table.SortKey} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
