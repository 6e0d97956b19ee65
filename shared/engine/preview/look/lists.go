package look

import (
	"strings"
	"sync"
)

// Words that say how a prompt is meant. They are of the languages of names.txt.

// fillers say nothing about what a picture should look like.
var fillers = sync.OnceValue(func() map[string]bool {
	return set(`a an and are as at be been by can could do does did for from get has have i in into is its just
	like me mine my of off on onto or our please so some that the their them then there these this those thing to
	too us very was want we were will with would you your u pls plz could should shall really quite bit little
	more much lot most slightly totally completely fully again also plus than
	it everything all whole entire entirely both
	look looks looking looked looklike style styled stylize styled aesthetic vibe vibes mood feel feeling effect
	version theme themed themes filter art artwork artistic type kind way appear
	video clip image picture photo photograph footage scene shot frame frames recording
	render rendered rendering reimagine restyle edit process
	beautiful beautifully nice great good high quality detailed detail details 4k 8k best masterpiece stunning
	amazing cool pretty awesome full falling classic old fashioned real realistic photorealistic ultra super hyper
	makes made turned turns converted changed transformed
	use using used apply applied set create generate show let help try go going need wish
	hello hi hey thanks thank ok okay
	el la los las un una unos unas de del en con y o que este esta esto eso como por para al lo se su mi
	haz hazlo hacer convierte conviertelo conviertela convertir pon ponle estilo cambia efecto imagen foto
	pintura dibujo cuadro favor quiero todo
	le les une des du dans avec et ou ce cet cette ces comme pour au aux sur mets mettre fais faire rends rendre
	transforme transformer cree effet peinture dessin style est veux plait sil vous je tout
	o os as um uma uns umas em do da dos das na num numa com e ou isto isso este esta como para faz faca
	transforme transforma coloca estilo efeito imagem pintura desenho quero por tudo
	der die das den dem des ein eine einen einem einer im in mit und oder dies dieses diese wie zu zur zum als von es andere
	mach mache machen verwandle verwandeln bild stil effekt bitte alles ich mochte gemalde
	в во на с со и или как это этот эту этом сделай сделать сделайте преврати превратить превратите картина картину
	картине стиль стиле видео фото рисунок рисунке эффект измени пожалуйста хочу под все
	في من الى على مع و او هذا هذه كما مثل اجعل اجعله اجعلها حول حوله الفيديو الصورة صورة فيديو لوحة رسم بأسلوب
	اسلوب نمط بنمط تأثير من فضلك الى
	में को का की के और या यह इसे इस जैसा जैसे बनाओ बनाएं बनाइए बना दो कर करो करें बदलो बदलें चित्र शैली वीडियो
	तस्वीर फोटो प्रभाव कृपया एक से पर
	এই এটি এটা এটাকে একটি এক ও এবং বা মতো মত করো করুন কর বানাও বানান ছবি শৈলী স্টাইল ভিডিও প্রভাব দয়া করে এর তে
	رنگ میں کو کا کی کے اور یا یہ اسے اس جیسا بنائیں بناؤ بنا دو دیں کریں کرو تصویر انداز ویڈیو اثر براہ کرم ایک سے پر
	把 将 將 变 變 成 为 為 让 讓 给 給 加 上 下 个 個 一 这 這 那 的 了 在 和 与 与 里 中 风 風 格 效 果 做 作 转 轉 换 換
	请 請 用 画 畫 图 圖 片 视 視 频 頻 照 像 样 樣 子 种 種 张 張 幅 式 化 改 它 有 点 點 我 想 要 艺 術 术 面
	に を の は が と で へ も し て た る い な す 風 調 化 画 動 像 写 真 絵 ま く だ さ よ う え ち ぽ み`)
})

// negations take back what follows in their clause.
var negations = sync.OnceValue(func() map[string]bool {
	return set(`no not without never dont doesnt didnt wont cant nothing none avoid except keep leave preserve
	unchanged untouched
	sin nunca ningun ninguna nada sans pas ne rien aucun aucune sem nao nenhum nenhuma nicht ohne kein keine keinen nichts
	не без нет ничего لا بدون غير ليس 不 别 別 没 沒 无 無 勿 बिना مت بلا`)
})

// refusals take back their whole clause: in some languages they stand at its end.
var refusals = sync.OnceValue(func() map[string]bool {
	return set(`नहीं मत ना না নয় ছাড়া নেই نہیں نہ بغیر`)
})

// things begin instructions that no look follows: to take something away, or what
// somebody wears or holds.
var things = sync.OnceValue(func() map[string]bool {
	return set(`remove removing removed delete deleting erase erasing eliminate hide blur unblur crop cut trim
	mask strip clean wipe rid wear wearing wears hold holding holds carry carrying ride riding
	quita quitar elimina eliminar borra borrar enleve enlever supprime supprimer efface effacer remova remover tira tirar
	entferne entfernen losche убери убрать удали удалить احذف ازل হটাও মুছে हटाओ हटाएं हटा ہٹا ہٹائیں 删 刪 去 移 消 除`)
})

// placings begin an instruction about a thing in the picture.
var placings = sync.OnceValue(func() map[string]bool {
	return set(`add adding added insert put putting place placing replace replacing replaced swap swapping switch
	dress have having attach grow move zoom
	anade anadir agrega agregar pon ponle reemplaza reemplazar ajoute ajouter mets remplace remplacer
	adicione adicionar coloque substitua fuge setze ersetze добавь добавить замени заменить надень
	اضف استبدل ضع جोड़ जोड़ो लगाओ পরাও যোগ شامل 戴 穿 添 替`)
})

// turnings begin an instruction about the picture, or about a thing in it where that
// is named.
var turnings = sync.OnceValue(func() map[string]bool {
	return set(`make making turn turning change changing transform convert recolor recolour dye give giving draw
	drawing paint render`)
})

// wholes name the picture as a whole, so that what is said of them is said of it.
var wholes = sync.OnceValue(func() map[string]bool {
	return set(`it this that everything all whole entire video clip image picture photo photograph footage scene shot
	frame color colour tone tint hue palette light lighting mood style look atmosphere weather season time day
	grade grading wash cast overlay shade temperature exposure contrast saturation brightness vibe effect filter`)
})

// joiners join two instructions.
var joiners = sync.OnceValue(func() map[string]bool { return set("and then but plus also y et und e и و") })

// scopes say of a change of colours that the whole picture is meant.
var scopes = sync.OnceValue(func() map[string]bool {
	return set(`everything whole entire video clip image picture photo footage scene tone toned tint tinted hue palette
	lighting mood wash cast overlay filter grade grading atmosphere`)
})

// objectlike are phrases of looks that more often name a thing in the picture. They
// ask for a look only where nothing else is named, or where a style is asked for.
var objectlike = sync.OnceValue(func() map[string]bool {
	members := map[string]bool{}
	for phrase := range strings.SplitSeq(`fall, october, icy, ice, frozen, christmas, aquarium, golden, dawn, fire, flames,
	lava, volcano, hell, burning, desert, dune, mars, western, tokyo, neon, futuristic, dream, fantasy, magical, zombie,
	halloween, movie, film, dramatic, detective, antique, vintage, retro, polaroid, analog, crt, predator, military,
	surveillance, hacker, negative, inverted, matrix, oil, acrylic, painting, painted, pencil, sketch, graphite,
	drawing, drawn, toon, cartoon, comic, comic book, graphic novel, ink, inked, superhero, pixel, arcade, video game,
	brick, toy brick, building block, lego, tile, polygon, origami, crystal, gold, golden statue, gold statue, statue,
	bronze, sculpture, geometric, confetti, blossom, cherry blossom, manga, animation, videotape, video tape, camcorder,
	frost, old photo, old photograph, old film, charcoal, tiffany`, ",") {
		members[strings.Join(words(phrase), " ")] = true
	}
	return members
})

// styleCues stand beside a look that is asked for as one.
var styleCues = sync.OnceValue(func() map[string]bool {
	return set(`of style styled look effect aesthetic vibe art artwork version as into like estilo stil stile`)
})

// articles stand between a cue and its look.
var articles = sync.OnceValue(func() map[string]bool { return set("a an the un una une ein eine um uma") })

// afterNo are words before which "no" is the Portuguese "in the".
var afterNo = sync.OnceValue(func() map[string]bool { return set("estilo inverno outono formato entardecer") })
