package look

import (
	_ "embed"
	"strings"
	"sync"
)

// Words that change a prompt's meaning, in the languages of names.txt.

// fillersFile has the words that say nothing about a picture's appearance.
//
//go:embed fillers.txt
var fillersFile string

var fillers = sync.OnceValue(func() map[string]bool { return set(fillersFile) })

// negations cancel the rest of the clause.
var negations = sync.OnceValue(func() map[string]bool {
	return set(`no not without never dont doesnt didnt wont cant nothing none avoid except keep leave preserve
	unchanged untouched
	sin nunca ningun ninguna nada sans pas ne rien aucun aucune sem nao nenhum nenhuma nicht ohne kein keine keinen nichts
	не без нет ничего لا بدون غير ليس 不 别 別 没 沒 无 無 勿 बिना مت بلا`)
})

// refusals cancel their entire clause, because in some languages they come at its end.
var refusals = sync.OnceValue(func() map[string]bool {
	return set(`नहीं मत ना না নয় ছাড়া নেই نہیں نہ بغیر`)
})

// things start instructions about removed objects, clothes and held objects. No look follows from
// these.
var things = sync.OnceValue(func() map[string]bool {
	return set(`remove removing removed delete deleting erase erasing eliminate hide blur unblur crop cut trim
	mask strip clean wipe rid wear wearing wears hold holding holds carry carrying ride riding
	quita quitar elimina eliminar borra borrar enleve enlever supprime supprimer efface effacer remova remover tira tirar
	entferne entfernen losche убери убрать удали удалить احذف ازل হটাও মুছে हटाओ हटाएं हटा ہٹا ہٹائیں 删 刪 去 移 消 除`)
})

// placings start instructions that put an object into the picture.
var placings = sync.OnceValue(func() map[string]bool {
	return set(`add adding added insert put putting place placing replace replacing replaced swap swapping switch
	dress have having attach grow move zoom
	anade anadir agrega agregar pon ponle reemplaza reemplazar ajoute ajouter mets remplace remplacer
	adicione adicionar coloque substitua fuge setze ersetze добавь добавить замени заменить надень
	اضف استبدل ضع جोड़ जोड़ो लगाओ পরাও যোগ شامل 戴 穿 添 替`)
})

// turnings start instructions that change the picture or an object in it.
var turnings = sync.OnceValue(func() map[string]bool {
	return set(`make making turn turning change changing transform convert recolor recolour dye give giving draw
	drawing paint render`)
})

// wholes refer to the entire picture, so the instruction applies to all of it.
var wholes = sync.OnceValue(func() map[string]bool {
	return set(`it this that everything all whole entire video clip image picture photo photograph footage scene shot
	frame color colour tone tint hue palette light lighting mood style look atmosphere weather season time day
	grade grading wash cast overlay shade temperature exposure contrast saturation brightness vibe effect filter`)
})

var joiners = sync.OnceValue(func() map[string]bool { return set("and then but plus also y et und e и و") })

// scopes apply a color change to the entire picture.
var scopes = sync.OnceValue(func() map[string]bool {
	return set(`everything whole entire video clip image picture photo footage scene tone toned tint tinted hue palette
	lighting mood wash cast overlay filter grade grading atmosphere`)
})

// objectlike phrases can request a look but usually name an object. They request the look only if
// the prompt names nothing else or asks for a style.
var objectlike = sync.OnceValue(func() map[string]bool {
	members := map[string]bool{}
	for phrase := range strings.SplitSeq(`fall, october, icy, ice, frozen, christmas, aquarium, golden, dawn, fire, flames,
	lava, volcano, hell, burning, tokyo, neon, futuristic, dream, fantasy, magical, zombie,
	halloween, movie, film, dramatic, detective, antique, vintage, retro, polaroid, analog, crt, predator, military,
	surveillance, hacker, negative, inverted, matrix, oil, acrylic, painting, painted, pencil, sketch, graphite,
	drawing, drawn, toon, cartoon, comic, comic book, graphic novel, ink, inked, superhero, pixel, arcade, video game,
	brick, toy brick, building block, lego, tile, blossom, cherry blossom, manga, animation, videotape, video tape, camcorder,
	frost, old photo, old photograph, old film, charcoal, tiffany`, ",") {
		members[strings.Join(words(phrase), " ")] = true
	}
	return members
})

// styleCues appear next to the name of a look.
var styleCues = sync.OnceValue(func() map[string]bool {
	return set(`of style styled look effect aesthetic vibe art artwork version as into like estilo stil stile`)
})

// articles may appear between a cue and its look.
var articles = sync.OnceValue(func() map[string]bool { return set("a an the un una une ein eine um uma") })

// Before these words, "no" is Portuguese for "in the".
var afterNo = sync.OnceValue(func() map[string]bool { return set("estilo inverno outono formato entardecer") })
