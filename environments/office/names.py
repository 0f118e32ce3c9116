"""Invented people, firms and matters, shared out among the splits."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = _words(
    "Agnes Boris Clara Dmitri Edith Franz Gisela Henri Ilona Jasper Katja Leon Mirjam Noah "
    "Ottilie Piet Renate Simon Thea Umberto Valeria Wolf Xaver Ylva Zeno Alma Bjarne Celeste "
    "Dorian Esther Fabio Gerda Halvor Irma Joel Klara Lorenz Minna Njal Odette Paolo Ragna "
    "Stellan Tilda Ulla Vito Wilma Yannis Zita Anton Beate Carlo Dagny Erik Frida Gustav Helga "
    "Ivar Judith Kjell Livia Matteo Nele Olaf"
)
LAST = _words(
    "Ackermann Bellini Castell Dahl Engström Fontane Gruber Hansen Iversen Jansen Krantz Lindqvist "
    "Moreau Nyberg Oberg Petrov Quandt Rossi Sandell Tamm Urban Vogel Wendt Ziegler Almeida "
    "Borg Corsini Deering Espen Foss Gallo Hollis Imre Jonsson Kovacs Lang Madsen Neri Olsen "
    "Palmer Rydell Salo Torres Unger Vidal Winter Yorke Zoltan Aalto Brenner Cruz Dubois Ebner "
    "Faro Greer Hedin Ince Juhl Kuhn Lazar Mohr Noll Orsini Pohl"
)
FIRMS = _words(
    "Ambervale Brightwell Cinderford Dovecote Elmstead Foxglove Greywater Highmoor Ironbridge "
    "Jasperdale Kingsmead Longreach Millbrook Nightfall Oldcastle Pennyfield Quicksilver Redstone "
    "Silverpine Truelock Underhill Vinewood Whitecliff Yellowtail Ashgrove Blackwell Clearwater "
    "Dunhallow Everfield Fairhaven Goldcrest Hawksmoor Inkwell Juniper Kestrel Lakeside "
    "Marlstone Norwood Oakhurst Prestwick Quillon Rosedale Stonehaven Thornbury Upland Vantage "
    "Westbrook Yarrow"
)
KINDS = _words("Labs Works Partners Systems Foods Energy Shipping Media")
TOPICS = _words(
    "Budget Roadmap Audit Launch Hiring Pricing Onboarding Renewal Branding Logistics Security "
    "Training Research Forecast Quality Staffing Migration Packaging Compliance Outreach "
    "Procurement Warranty Telemetry Travel"
)
EVENTS = _words("review workshop planning briefing sync debrief check-in talk")
STRANGE = _words(
    "quick-desk.test fastbox.test securemail.test helpline.test dropzone.test openpost.test "
    "rapid-it.test sendhub.test"
)
"""Where those write from who should get nothing."""
