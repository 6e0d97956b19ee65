package fakeaws

import (
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The sizes and units here follow the DynamoDB Developer Guide, "DynamoDB item sizes and formats".

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
		return numberSize(v.Value)
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

// numberSize returns the size of a number in bytes: one per two significant digits, plus one, plus
// one for a minus sign.
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

func readUnits(bytes int, consistent *bool) float64 {
	units := math.Max(1, math.Ceil(float64(bytes)/4096))
	if consistent == nil || !*consistent {
		units /= 2
	}
	return units
}

// writeUnits returns the capacity units of a write that replaces an item with another. The larger of the two items
// determines the units.
func writeUnits(before, after item) float64 {
	return math.Max(1, math.Ceil(float64(max(sizeOf(before), sizeOf(after)))/1024))
}
