package fakeaws

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// change is one action of a parsed update expression. It reads the old item and writes to the new one.
type change func(before scope, after item)

type update []change

func parseUpdate(text string) update {
	p := newParser(text)
	var all update
	for p.peek() != "" {
		var one func() change
		switch clause := strings.ToUpper(p.next()); clause {
		case "SET":
			one = p.set
		case "REMOVE":
			one = p.remove
		case "ADD":
			one = p.add
		case "DELETE":
			one = p.delete
		default:
			p.fail("has no clause " + clause)
		}
		all = append(all, one())
		for p.take(",") {
			all = append(all, one())
		}
	}
	return all
}

func (p *parser) set() change {
	path := p.next()
	p.expect("=")
	value := p.operand()
	for p.peek() == "+" || p.peek() == "-" {
		sign := int64(1)
		if p.next() == "-" {
			sign = -1
		}
		left, right := value, p.operand()
		value = func(s scope) types.AttributeValue { return sum(left(s), right(s), sign) }
	}
	return func(before scope, after item) { after[before.name(path)] = value(before) }
}

func (p *parser) remove() change {
	path := p.next()
	return func(before scope, after item) { delete(after, before.name(path)) }
}

func (p *parser) add() change {
	path, value := p.next(), p.operand()
	return func(before scope, after item) {
		name := before.name(path)
		if set, ok := value(before).(*types.AttributeValueMemberSS); ok {
			after[name] = added(before.item[name], set.Value)
			return
		}
		after[name] = sum(before.item[name], value(before), 1)
	}
}

func (p *parser) delete() change {
	path, value := p.next(), p.operand()
	return func(before scope, after item) {
		name := before.name(path)
		set, _ := value(before).(*types.AttributeValueMemberSS)
		if set == nil {
			return
		}
		if left := without(before.item[name], set.Value); left != nil {
			after[name] = left
		} else {
			delete(after, name)
		}
	}
}
