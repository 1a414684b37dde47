"""The forms of refusals in German and Dutch; `english_refusals` says how they are written."""

from metric_core.refusals.refusal_kinds import LanguageForms, RefusalKind

_QUESTION, _NOTHING, _POLICY = RefusalKind

_DE_SOURCE = (
    r"(?:dokument\w*|handbuch|kontext\w*|text\w*|quelle\w*|unterlagen|information\w*|passage\w*|abschnitt\w*|auszug\w*"
    r"|auszüge\w*|artikel\w*|daten|suchergebnis\w*|textstelle\w*|material\w*|seiten?)"
)
_DE_FACT = (
    r"(?:information|angabe|hinweis|antwort|auskunft|daten|auskünfte|ergebnis|treffer|erwähnung|details|erkenntnis)"
)
_DE_SHOWN = (
    r"(?:erwähn|genannt|enthalten|angegeben|hervor|beschrieben|steh|zu finden|beantwort|gefunden|entnehm|ableit)"
)
GERMAN: LanguageForms = {
    _QUESTION: (
        (
            r"\b(?:welche[rsnm]?|was|wen|wer)\b[^.?!]{0,60}\b(?:meinen sie|meinst du|beziehen sie|beziehst du"
            r"|ist gemeint"
            r"|geht es (?:ihnen|dir)|sprechen sie|sprichst du|suchen sie|suchst du|interessier)"
        ),
        (
            r"\b(?:können|könnten|kannst|könntest|würden|würdest) (?:sie|du)\b[^.?!]{0,60}\b(?:präzisier|genauer"
            r"|konkretisier|spezifizier|erläuter|klarstell|mitteil|sagen,? (?:welche|was|ob)|angeben|näher)"
        ),
        r"^(?:oder )?(?:meinen sie|meinst du|beziehen sie sich|beziehst du dich)\b",
        r"\bbitte (?:\w+ ){0,4}(?:präzisier|konkretisier|spezifizier|genauer|nähere)",
        (
            r"\b(?:ihre|deine|die) (?:frage|anfrage) ist (?:\w+ )?(?:unklar|mehrdeutig|zu allgemein|nicht eindeutig"
            r"|unvollst)"
        ),
    ),
    _NOTHING: (
        r"\b(?:ich|wir) (?:weiß|weiss|wissen)\b[^.;]{0,30}\bnicht\b",
        r"\b(?:weiß|weiss) (?:ich )?(?:das )?(?:leider )?nicht\W*$",
        (
            r"\b(?:ich|wir)\b[^.;]{0,60}\b(?:nicht|nichts|keine\w*)\b[^.;]{0,60}\b(?:finden|gefunden|sagen|ermitteln"
            r"|entnehmen|feststellen|bestimmen|bekannt|sicher|finde|kenne)\b"
        ),
        rf"\b(?:ich|wir|mir|uns)\b[^.;]{{0,40}}\bkeine(?:n|rlei)? (?:\w+ ){{0,3}}{_DE_FACT}",
        rf"\b{_DE_SOURCE}\b[^.;]{{0,60}}\b(?:nicht|nichts)\b[^.;]{{0,60}}\b{_DE_SHOWN}",
        (
            rf"\b(?:nicht|nichts)\b[^.;]{{0,40}}\b(?:in|im|aus|anhand|mit"
            rf"|auf) [^.;]{{0,40}}{_DE_SOURCE}\b[^.;]{{0,30}}{_DE_SHOWN}"
        ),
        rf"\b(?:erwähnt|erwähnen|nennt|nennen)\b[^.;]{{0,20}}{_DE_SOURCE}\b[^.;]{{0,40}}\b(?:nicht|nichts|keine)\b",
        (
            rf"\b{_DE_SOURCE}\b[^.;]{{0,30}}\b(?:erwähnt|erwähnen|nennt|nennen|sagt|sagen|enthält|enthalten|liefern"
            rf"|liefert"
            r"|geben|gibt|machen|macht)\b[^.;]{0,40}\b(?:nicht|nichts|keine\w*)\b"
        ),
        (
            rf"\b(?:gibt es|gibt|liegen|liegt|enthält|enthalten|finden sich|findet sich)\b[^.;]{{0,60}}"
            rf"\bkeine(?:n|rlei)? (?:\w+ ){{0,2}}{_DE_FACT}"
        ),
        (
            rf"^(?:leider )?(?:es (?:wurden|wurde|gibt|liegen) )?(?:keine?r?|keinerlei) (?:\w+ ){{0,2}}(?:{_DE_FACT}"
            rf"|dokument"
            r"|passend|relevant)\w*(?:\W*$| (?:\w+ ){0,8}?(?:gefunden|vorhanden|verfügbar|enthalten|vor|dazu|hierzu"
            r"|möglich|im kontext|im text)\b)"
        ),
        rf"\bkein\w* (?:\w+ ){{0,2}}(?:{_DE_SOURCE}|{_DE_FACT}\w*)\b[^.;]{{0,30}}\bgefunden\b",
        r"\b(?:lässt|lassen) sich\b[^.;]{0,60}\b(?:nicht|keine?)\b[^.;]{0,50}\b(?:beantwort|entnehm|sagen|ableit)",
        (
            r"\b(?:kann|können|konnte)\b[^.;]{0,60}\bnicht\b[^.;]{0,40}\b(?:beantwortet|gefunden|entnommen"
            r"|ermittelt) werden\b"
        ),
        rf"\bnicht (?:genug|genügend|ausreichend)\w* (?:\w+ )?(?:{_DE_FACT}|kontext)",
        r"\bdazu (?:\w+ )?(?:keine|nichts)\b",
        rf"\b(?:steht|stehen|geht)\b[^.;]{{0,30}}\bnicht\b[^.;]{{0,10}}\b(?:im|in|aus) [^.;]{{0,20}}{_DE_SOURCE}",
        r"^(?:unbekannt|keine ahnung|nicht (?:bekannt|angegeben|erwähnt|gefunden|genannt|verfügbar|beantwortbar))\W*$",
    ),
    _POLICY: (
        (
            r"\bich\b[^.;]{0,60}\b(?:nicht|keine\w*|leider nicht)\b[^.;]{0,80}\b(?:helfen|weiterhelfen|behilflich"
            r"|nachkommen"
            r"|unterstützen|erfüllen|bereitstellen|anbieten|beantworten|äußern|diskutieren|geben|dienen|teilnehmen)\b"
        ),
        r"\bwir\b[^.;]{0,40}\bnicht\b[^.;]{0,40}\b(?:helfen|weiterhelfen|beantworten)\b",
        r"\b(?:bin ich|ich bin)\b[^.;]{0,30}\b(?:nicht (?:in der lage|befugt|berechtigt|autorisiert)|außerstande)\b",
        r"\bals (?:\w+ )?(?:ki|künstliche|sprachmodell|assistent)\w*\b[^.;]{0,80}\b(?:nicht|keine\w*)\b",
        r"\b(?:verstößt gegen|widerspricht) (?:meine|unsere|den|die)\b[^.;]{0,30}(?:richtlinien|grundsätze|regeln)",
    ),
}
DUTCH: LanguageForms = {
    _QUESTION: (
        r"\b(?:welke?|wat|wie)\b[^.?!]{0,60}\b(?:bedoelt u|bedoel je|heeft u het over|heb je het over)\b",
        (
            r"\b(?:kunt u|kun je|zou u|zou je)\b[^.?!]{0,40}\b(?:verduidelijken|specificeren|preciezer|toelichten"
            r"|aangeven)"
        ),
        r"^(?:of )?(?:bedoelt u|bedoel je)\b",
    ),
    _NOTHING: (
        r"\b(?:ik|we|wij) (?:weet|weten|vind|vinden)\b[^.;]{0,40}\b(?:niet|geen|niets)\b",
        (
            r"\b(?:ik|we|wij)\b[^.;]{0,40}\b(?:niet|geen|niets)\b[^.;]{0,30}\b(?:vinden|gevonden|zeggen|bepalen"
            r"|informatie)\b"
        ),
        r"\bweet (?:ik|wij|we) (?:helaas )?niet\b",
        (
            r"\b(?:document\w*|handboek|context|tekst\w*|bron\w*|informatie|passage\w*)\b[^.;]{0,40}\b(?:niet|geen"
            r"|niets)\b"
            r"[^.;]{0,30}\b(?:vermeld|genoemd|informatie|bevat|staat|gevonden)"
        ),
        r"\b(?:vermeldt|noemt) (?:\w+ ){0,3}(?:niet|geen|niets)\b",
        r"\ber (?:is|staat|zijn) (?:\w+ )?geen (?:informatie|gegevens|antwoord)",
        r"^geen (?:\w+ )?(?:informatie|antwoord|documenten|gegevens|resultaten)(?: (?:gevonden|beschikbaar))?\W*$",
    ),
    _POLICY: (
        r"\b(?:ik|we)\b[^.;]{0,40}\bniet\b[^.;]{0,40}\b(?:helpen|assisteren|beantwoorden|voldoen|verstrekken)\b",
        r"\bals (?:\w+ )?(?:ai|taalmodel|assistent)\b[^.;]{0,60}\b(?:niet|geen)\b",
    ),
}
