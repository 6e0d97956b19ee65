package fakeaws

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is a DynamoDB record. Its values are never changed in place.
type item = map[string]types.AttributeValue

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// compare compares two strings, numbers or booleans and returns -1, 0 or 1. For other values, ok is false.
func compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, same := b.(*types.AttributeValueMemberN); same {
			x, errX := strconv.ParseInt(a.Value, 10, 64)
			y, errY := strconv.ParseInt(b.Value, 10, 64)
			if errX != nil || errY != nil {
				return cmp.Compare(float(a.Value), float(b.Value)), true
			}
			return cmp.Compare(x, y), true
		}
	case *types.AttributeValueMemberBOOL:
		if b, same := b.(*types.AttributeValueMemberBOOL); same {
			return strings.Compare(strconv.FormatBool(a.Value), strconv.FormatBool(b.Value)), true
		}
	}
	return 0, false
}

func float(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // the adapters send only valid numbers
	return f
}

// sum returns a plus b, or a minus b if sign is -1. A missing value is treated as 0.
func sum(a, b types.AttributeValue, sign int64) types.AttributeValue {
	x, y := numberOf(a), numberOf(b)
	m, errM := strconv.ParseInt(x, 10, 64)
	n, errN := strconv.ParseInt(y, 10, 64)
	if errM != nil || errN != nil {
		return &types.AttributeValueMemberN{Value: strconv.FormatFloat(float(x)+float64(sign)*float(y), 'f', -1, 64)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(m+sign*n, 10)}
}

func numberOf(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return "0"
}

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

// without returns a copy of the set that lacks the given elements. It returns nil instead of an empty set, because
// DynamoDB has no empty sets.
func without(set types.AttributeValue, less []string) types.AttributeValue {
	had, ok := set.(*types.AttributeValueMemberSS)
	if !ok {
		return set
	}
	left := slices.DeleteFunc(slices.Clone(had.Value), func(e string) bool { return slices.Contains(less, e) })
	if len(left) == 0 {
		return nil
	}
	return &types.AttributeValueMemberSS{Value: left}
}
