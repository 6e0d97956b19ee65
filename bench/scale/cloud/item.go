package cloud

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/bench/capacity"
)

// item is a record of DynamoDB. Its values are never changed in place.
type item = map[string]types.AttributeValue

// textOf returns the text of a value, "" if it is none.
func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// compare orders two values of one type: -1, 0 or 1. Values of two types have no order.
func compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, same := b.(*types.AttributeValueMemberN); same {
			return compareNumbers(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberBOOL:
		if b, same := b.(*types.AttributeValueMemberBOOL); same {
			if a.Value == b.Value {
				return 0, true
			}
			return 1, true
		}
	}
	return 0, false
}

func compareNumbers(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX != nil || errY != nil {
		f, g := float(a), float(b)
		switch {
		case f < g:
			return -1
		case f > g:
			return 1
		}
		return 0
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func float(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // what adapters send are numbers
	return f
}

// sum returns a plus b, or a minus b.
func sum(a, b types.AttributeValue, sign int64) types.AttributeValue {
	x, _ := a.(*types.AttributeValueMemberN)
	y, _ := b.(*types.AttributeValueMemberN)
	if x == nil {
		x = &types.AttributeValueMemberN{Value: "0"}
	}
	if y == nil {
		y = &types.AttributeValueMemberN{Value: "0"}
	}
	m, errM := strconv.ParseInt(x.Value, 10, 64)
	n, errN := strconv.ParseInt(y.Value, 10, 64)
	if errM != nil || errN != nil {
		total := float(x.Value) + float64(sign)*float(y.Value)
		return &types.AttributeValueMemberN{Value: strconv.FormatFloat(total, 'f', -1, 64)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(m+sign*n, 10)}
}

// added returns a set with more elements.
func added(set types.AttributeValue, more []string) types.AttributeValue {
	var all []string
	if had, ok := set.(*types.AttributeValueMemberSS); ok {
		all = slices.Clone(had.Value)
	}
	for _, element := range more {
		if !slices.Contains(all, element) {
			all = append(all, element)
		}
	}
	return &types.AttributeValueMemberSS{Value: all}
}

// without returns a set with fewer elements, nil if none is left: there is no empty set.
func without(set types.AttributeValue, less []string) types.AttributeValue {
	had, ok := set.(*types.AttributeValueMemberSS)
	if !ok {
		return set
	}
	gone := map[string]bool{}
	for _, element := range less {
		gone[element] = true
	}
	var left []string
	for _, element := range had.Value {
		if !gone[element] {
			left = append(left, element)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &types.AttributeValueMemberSS{Value: left}
}

// sizeOf returns the size of an item in bytes, as DynamoDB counts it (DynamoDB Developer
// Guide, "DynamoDB item sizes and formats").
func sizeOf(i item) int {
	size := 0
	for name, value := range i {
		size += len(name) + valueSize(value)
	}
	return size
}

func valueSize(value types.AttributeValue) int {
	size := 0
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return capacity.Number(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			size += len(s)
		}
		return size
	case *types.AttributeValueMemberL:
		size = 3
		for _, one := range v.Value {
			size += valueSize(one) + 1
		}
		return size
	case *types.AttributeValueMemberM:
		return sizeOf(v.Value) + 3 + len(v.Value)
	}
	return 1 // a boolean or null
}

// writeUnits returns the units of a write that turned before into after: by the larger.
func writeUnits(before, after item) float64 {
	return capacity.Writes(max(sizeOf(before), sizeOf(after)))
}
