"""Invented people, places and goods, shared out among the splits."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = _words(
    "Ada Bruno Carla Dario Elif Felix Greta Hugo Ines Jonas Kira Liam Mara Nils Olga Pavel "
    "Quinn Rosa Sven Tara Uma Viktor Wanda Xenia Yusuf Zora Amir Bea Cyril Dana Emil Fiona "
    "Goran Hana Igor Jana Karim Lena Milo Nora Oskar Petra Rami Selma Tibor Ursula Vera Walid "
    "Yara Zeno Aron Britta Caspar Delia Egon Farida Gil Hedda Ivo Judit Kaspar Lotte Marek "
    "Nadia"
)
LAST = _words(
    "Abel Brandt Castor Dorn Ekberg Falk Garin Holm Ibsen Jarvis Keller Lorca Mertens Novak "
    "Orlov Perrin Quist Rask Solberg Thorn Ulrich Varga Weiss Yilmaz Zeman Arden Bloom Corvin "
    "Drake Elster Frost Grimm Hale Irwin Joyce Kemp Lund Marsh North Oakes Penn Quill Rowe "
    "Stark Tully Usher Vance Wren Yates Zane Aldous Birch Crane Dunn Eames Finch Gould Heath "
    "Innes Jude Knox Locke Mead Nash"
)
CITIES = _words(
    "Alderton Brackwater Corvale Dunmere Eastholm Farrowby Gildport Hartsea Inverloch Jorvale "
    "Kestrelton Larkhill Mossford Northgate Oxbourne Pinehurst Quarrybank Ravensport "
    "Stonemill Thistleton Upwater Valebridge Westerly Yarrowdale"
)
STREETS = _words(
    "Alder Birch Cedar Dogwood Elm Fern Gorse Hazel Ivy Juniper Kelp Laurel Maple Nettle Oak "
    "Poplar Quince Rowan Sorrel Thyme Umber Violet Willow Yew"
)
COUNTRIES = ("Norland", "Suvania", "Estmark", "Westria", "Ostland", "Calder", "Mirova", "Tarsia")
DOMAINS = _words("post.test mail.test desk.test note.test fast.test home.test nord.test vale.test")
AIRPORTS = _words(
    "ALT BRK COR DUN EAS FAR GIL HAR INV JOR KES LAR MOS NOR OXB PIN QUA RAV STO THI UPW VAL "
    "WES YAR"
)
COLOURS = _words("red blue green black white grey amber teal")
SIZES = ("small", "medium", "large")
GOODS = {
    "electronics": _words("headphones speaker charger keyboard webcam lamp router tablet"),
    "clothing": _words("jacket sweater scarf raincoat shirt hoodie gloves trousers"),
    "home": _words("kettle blanket vase mirror clock rug teapot shelf"),
    "outdoor": _words("tent backpack lantern stove hammock compass canteen tarp"),
    "toys": _words("puzzle kite robot train castle marble yoyo drum"),
}
BRANDS = _words(
    "Aurora Bastion Cobalt Drift Ember Fjord Glacier Harbor Isle Juno Krill Lumen Meadow "
    "Nimbus Orbit Prairie Quartz Ridge Summit Tundra Umbra Vista Willow Zephyr"
)
