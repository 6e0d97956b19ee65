package fakeaws

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// scope holds an expression's operands: an item and the call's placeholders.
type scope struct {
	item   item
	names  map[string]string
	values item
}

func (s scope) name(path string) string {
	if strings.HasPrefix(path, "#") {
		return s.names[path]
	}
	return path
}

type condition func(scope) bool

// operand is a part of an expression that has a value. The value is nil if the attribute is missing.
type operand func(scope) types.AttributeValue

var tokens = regexp.MustCompile(`<>|<=|>=|[=<>(),+-]|[#:]?[A-Za-z0-9_]+`)

// parser parses an expression. It supports the syntax that the adapters use, with top-level attributes only.
type parser struct {
	words []string
	text  string
}

func newParser(text string) *parser { return &parser{tokens.FindAllString(text, -1), text} }

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) next() string {
	word := p.peek()
	if word == "" {
		p.fail("ends early")
	}
	p.words = p.words[1:]
	return word
}

func (p *parser) take(word string) bool {
	if !strings.EqualFold(p.peek(), word) {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *parser) expect(word string) {
	if !p.take(word) {
		p.fail("wants " + word)
	}
}

// fail panics, because an unsupported expression means that the simulation is incomplete.
func (p *parser) fail(what string) {
	panic(fmt.Sprintf("fakeaws: the expression %q %s at %q", p.text, what, strings.Join(p.words, " ")))
}

func parseCondition(text string) condition {
	p := newParser(text)
	c := p.or()
	if p.peek() != "" {
		p.fail("goes on")
	}
	return c
}

func (p *parser) or() condition {
	left := p.and()
	for p.take("OR") {
		before, right := left, p.and()
		left = func(s scope) bool { return before(s) || right(s) }
	}
	return left
}

func (p *parser) and() condition {
	left := p.not()
	for p.take("AND") {
		before, right := left, p.not()
		left = func(s scope) bool { return before(s) && right(s) }
	}
	return left
}

func (p *parser) not() condition {
	if p.take("NOT") {
		c := p.not()
		return func(s scope) bool { return !c(s) }
	}
	if p.take("(") {
		c := p.or()
		p.expect(")")
		return c
	}
	switch word := strings.ToLower(p.peek()); word {
	case "attribute_exists", "attribute_not_exists":
		p.next()
		p.expect("(")
		path := p.next()
		p.expect(")")
		return func(s scope) bool { return (s.item[s.name(path)] != nil) == (word == "attribute_exists") }
	case "begins_with":
		p.next()
		p.expect("(")
		whole := p.operand()
		p.expect(",")
		start := p.operand()
		p.expect(")")
		return func(s scope) bool { return strings.HasPrefix(textOf(whole(s)), textOf(start(s))) }
	}
	return p.comparison()
}

func (p *parser) comparison() condition {
	left := p.operand()
	switch sign := strings.ToUpper(p.next()); sign {
	case "IN":
		p.expect("(")
		all := []operand{p.operand()}
		for p.take(",") {
			all = append(all, p.operand())
		}
		p.expect(")")
		return func(s scope) bool {
			return slices.ContainsFunc(all, func(o operand) bool { return holds("=", left(s), o(s)) })
		}
	case "BETWEEN":
		low := p.operand()
		p.expect("AND")
		high := p.operand()
		return func(s scope) bool { return holds(">=", left(s), low(s)) && holds("<=", left(s), high(s)) }
	case "=", "<>", "<", "<=", ">", ">=":
		right := p.operand()
		return func(s scope) bool { return holds(sign, left(s), right(s)) }
	default:
		p.fail("wants a comparison")
		return nil
	}
}

func holds(sign string, a, b types.AttributeValue) bool {
	order, ok := compare(a, b)
	if !ok {
		return sign == "<>"
	}
	switch sign {
	case "=":
		return order == 0
	case "<>":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (p *parser) operand() operand {
	word := p.next()
	switch strings.ToLower(word) {
	case "size":
		p.expect("(")
		of := p.operand()
		p.expect(")")
		return func(s scope) types.AttributeValue { return lengthOf(of(s)) }
	case "if_not_exists":
		p.expect("(")
		path := p.next()
		p.expect(",")
		otherwise := p.operand()
		p.expect(")")
		return func(s scope) types.AttributeValue {
			if found := s.item[s.name(path)]; found != nil {
				return found
			}
			return otherwise(s)
		}
	}
	if strings.HasPrefix(word, ":") {
		return func(s scope) types.AttributeValue { return s.values[word] }
	}
	return func(s scope) types.AttributeValue { return s.item[s.name(word)] }
}

// lengthOf implements the function size: the number of elements of a set or list, or of bytes of a string.
func lengthOf(v types.AttributeValue) types.AttributeValue {
	n := 0
	switch v := v.(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberSS:
		n = len(v.Value)
	case *types.AttributeValueMemberL:
		n = len(v.Value)
	case *types.AttributeValueMemberS:
		n = len(v.Value)
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
