"""The forms of refusals in French, Spanish, Italian and Portuguese; `english_refusals` says how they are written."""

from metric_core.refusals.refusal_kinds import LanguageForms, RefusalKind

_QUESTION, _NOTHING, _POLICY = RefusalKind

_FR_SOURCE = (
    r"(?:documents?|contexte|textes?|passages?|sources?|extraits?|articles?|manuel|informations?|données|pages?)"
)
_FR_FACT = r"(?:information|mention|réponse|précision|donnée|indication|détail|document|résultat|élément)"
FRENCH: LanguageForms = {
    _QUESTION: (
        (
            r"\b(?:quel|quelle|quels|quelles|lequel|laquelle|qui|que|quoi)\b[^.?!]{0,60}\b(?:parlez-vous|parles-tu"
            r"|voulez-vous (?:dire|parler)|veux-tu (?:dire|parler)|faites-vous (?:référence|allusion)|pensez-vous"
            r"|vous référez-vous|vous intéresse|cherchez-vous|s'agit-il)"
        ),
        (
            r"\b(?:pourriez-vous|pouvez-vous|peux-tu|pourrais-tu)\b[^.?!]{0,40}\b(?:préciser|clarifier|reformuler"
            r"|me dire"
            r"|indiquer|donner plus|fournir plus|être plus)"
        ),
        (
            r"^(?:ou )?(?:voulez-vous|parlez-vous|veux-tu|faites-vous référence|vous voulez) ?(?:dire|parler|à|de"
            r"|d')?\b[^.]{0,200}\?"
        ),
        r"\b(?:veuillez|merci de|s'il vous plaît,?) (?:\w+ )?(?:préciser|précisez|clarifier|reformuler|fournir plus)",
        (
            r"\bvotre (?:question|demande) (?:est|n'est pas|semble)\b[^.]{0,20}(?:claire|ambigu|vague|imprécise|trop"
            r"|floue)"
        ),
    ),
    _NOTHING: (
        (
            r"\b(?:je|nous) ne (?:\w+ )?(?:sais|savons|trouve|trouvons|dispose|disposons|connais)\b[^.;]{0,30}\b(?:pas"
            r"|aucune?|rien)\b"
        ),
        (
            r"\b(?:je|nous) ne (?:\w+ )?(?:peux|pouvons|parviens)\b[^.;]{0,20}\b(?:pas|à)\b[^.;]{0,20}\b(?:trouver|dire"
            r"|déterminer|savoir|confirmer|identifier)"
        ),
        rf"\b(?:je|nous) ne (?:peux|pouvons) pas répondre\b[^.;]{{0,60}}\b{_FR_SOURCE}\b",
        (
            rf"\b(?:je|nous) n'(?:ai|avons)\b[^.;]{{0,20}}\b(?:pas|aucune?|rien)\b[^.;]{{0,30}}\b(?:trouv"
            rf"|connaissance|accès|idée|{_FR_FACT})"
        ),
        r"\b(?:je|nous) ne (?:suis|sommes) pas (?:sûre?s?|certaine?s?)\b",
        (
            rf"\b{_FR_SOURCE}\b[^.;]{{0,40}}\b(?:ne|n')\s?(?:l')?(?:\w+ )?(?:mentionn|contien|préci|indiqu|fourni"
            rf"|perme|donn"
            r"|parl|compor|inclu|évoqu|abord|spécifi)\w*\b[^.;]{0,20}\b(?:pas|aucune?|rien)\b"
        ),
        r"\b(?:ne|n')\s?(?:mentionn|préci|évoqu)\w*\b[^.;]{0,20}\b(?:pas|aucune?|rien)\b",
        (
            r"\bn'(?:est|a|ont|y a|apparaît|sont)\b[^.;]{0,20}\bpas\b[^.;]{0,40}\b(?:dans|par"
            r"|à partir d\w+) [^.;]{0,20}"
            rf"\b{_FR_SOURCE}\b"
        ),
        rf"\bn'y a (?:\w+ )?(?:pas|aucune?)\b[^.;]{{0,20}}\b{_FR_FACT}",
        (
            rf"^(?:désolée?,? )?(?:aucune?|pas d'|pas de|pas assez d') ?(?:\w+ )?{_FR_FACT}s?(?:\W*$|[^.;]{{0,60}}"
            rf"\b(?:trouv|disponible|fourni|donné|sur (?:ce|cette|le|la)|concernant|{_FR_SOURCE}))"
        ),
        r"\bje l'ignore\b",
        r"\bimpossible de (?:répondre|déterminer|trouver|savoir|dire)",
        r"^(?:inconnue?|non (?:précisé|mentionné|spécifié|indiqué|disponible|renseigné)e?s?)\W*$",
    ),
    _POLICY: (
        (
            r"\bje ne (?:\w+ )?(?:peux|puis|saurais|vais|suis|souhaite)\b[^.;]{0,40}\b(?:aider|assister|fournir"
            r"|répondre"
            r"|donner|accéder à votre|satisfaire|participer|conseiller|recommander|en mesure|autorisée?|discuter"
            r"|commenter"
            r"|capable|habilitée?)"
        ),
        r"\bnous ne (?:pouvons|sommes)\b[^.;]{0,20}\b(?:vous aider|répondre|en mesure d)",
        r"\ben tant qu(?:e |')(?:\w+ )?(?:ia|intelligence|modèle|assistant)\w*\b[^.;]{0,80}\bn(?:e |')",
        r"\b(?:contraire à|enfreint|contre) (?:mes|nos)\b[^.;]{0,20}(?:directives|principes|règles|politiques)",
    ),
}

_ES_SOURCE = (
    r"(?:contextos?|documentos?|documentación|textos?|pasajes?|fuentes?|artículos?|extractos?|fragmentos?|información"
    r"|manual|datos|páginas?)"
)
_ES_FACT = r"(?:información|datos|mención|respuesta|detalles|referencias?|documentos?|resultados?|evidencia)"
SPANISH: LanguageForms = {
    _QUESTION: (
        (
            r"\b(?:cuál|cuáles|qué|quién)\b[^.?!]{0,60}\b(?:te refieres|se refiere|quieres decir|quiere decir|hablas"
            r"|estás hablando|está hablando|buscas|te interesa|le interesa)\b[^.]{0,60}\?"
        ),
        (
            r"\b(?:podrías|podría|puedes|puede|podrían)\b[^.?!]{0,30}\b(?:aclarar|especificar|precisar|reformular"
            r"|indicar"
            r"|decirme|darme más|proporcionar más|concretar|ser más)"
        ),
        r"^(?:o )?(?:te refieres|se refiere|quieres decir|quiere decir|hablas de|estás preguntando)\b[^.]{0,200}\?",
        r"\bpor favor,? (?:\w+ )?(?:aclar|especifi|precis|concret|reformul)",
        r"\b(?:tu|su|la) pregunta (?:es|no es|parece|resulta)\b[^.]{0,20}(?:clara|ambigua|vaga|demasiado|imprecisa)",
    ),
    _NOTHING: (
        r"\bno (?:lo )?(?:sé|sabemos|sabría)\b",
        r"\bdesconozco\b",
        (
            r"\bno (?:\w+ )?(?:puedo|podemos|pude|pudimos|logro|logré|consigo) (?:\w+ ){0,2}?(?:encontrar|determinar"
            r"|saber"
            r"|decir|confirmar|identificar|localizar)"
        ),
        rf"\bno (?:puedo|podemos) (?:\w+ )?responder\w*\b[^.;]{{0,60}}\b{_ES_SOURCE}\b",
        (
            r"\bno (?:he |hemos )?(?:encuentro|encontré|encontramos|encontrado|dispongo|disponemos|tengo|tenemos"
            r"|cuento)"
            rf"\b(?: \w+){{0,4}}? (?:{_ES_FACT}|acceso|conocimiento|nada|idea|constancia)"
        ),
        r"\bno estoy segur[oa]\b",
        (
            rf"\b{_ES_SOURCE}\b[^.;]{{0,40}}\bno (?:se |lo |la )?(?:menciona|contiene|especifica|indica|proporciona"
            rf"|dice"
            r"|incluye|ofrece|aborda|trata|habla|da|aporta|describe|explica)n?\b"
        ),
        r"\bno (?:se |lo )?(?:menciona|especifica)n?\b",
        (
            rf"\bno (?:se )?(?:indica|proporciona|encontró|encontraron|dice|incluye)n?\b[^.;]{{0,40}}\b(?:{_ES_FACT}"
            rf"|{_ES_SOURCE})"
        ),
        rf"\bno (?:hay|existe|existen)\b(?: \w+){{0,2}}? {_ES_FACT}\b",
        (
            rf"^(?:sin|ninguna?|no hay|no existe) (?:\w+ )?{_ES_FACT}(?:\W*$|[^.;]{{0,60}}\b(?:disponible|sobre"
            rf"|encontrad"
            rf"|{_ES_SOURCE}))"
        ),
        (
            rf"\bno (?:aparece|figura|está|están|se encuentra|consta)\w*\b[^.;]{{0,40}}\b(?:en|por) (?:el|la|los|las"
            rf"|este"
            rf"|estos|ningún)\b[^.;]{{0,20}}{_ES_SOURCE}"
        ),
        r"\b(?:no es posible|imposible|no se puede) (?:\w+ )?(?:responder|determinar|saber|encontrar)",
        r"\b(?:información|contexto|datos) (?:\w+ )?insuficientes?\b",
        r"^(?:desconocid[oa]|no (?:especificad|mencionad|disponible|encontrad|indicad|se sabe|consta)\w*|ni idea)\W*$",
    ),
    _POLICY: (
        (
            r"\bno (?:te |le |les |os |lo )?(?:\w+ )?(?:puedo|podría|debo|voy a|estoy)\b[^.;]{0,40}\b(?:ayudar|asistir"
            r"|proporcionar|responder|ofrecer|dar|compartir|cumplir|recomendar|participar|comentar|autorizad|capacitad"
            r"|en condiciones|discutir|generar)"
        ),
        r"\bno podemos (?:ayudar|responder|atender)",
        r"\bcomo (?:un |una )?(?:\w+ )?(?:modelo|ia|asistente|inteligencia)\b[^.;]{0,60}\bno\b",
        r"\b(?:va|van|iría) (?:en )?contra (?:de )?(?:mis|nuestras)\b",
    ),
}
ITALIAN: LanguageForms = {
    _QUESTION: (
        r"\b(?:quale|quali|cosa|che|chi)\b[^.?!]{0,60}\b(?:ti riferisci|si riferisce|intendi|intende|stai parlando)\b",
        (
            r"\b(?:potresti|potrebbe|puoi|può)\b[^.?!]{0,30}\b(?:chiarire|specificare|precisare|riformulare|dirmi"
            r"|indicare)"
        ),
        r"^(?:o )?(?:intendi|intende|ti riferisci|si riferisce)\b[^.]{0,200}\?",
    ),
    _NOTHING: (
        r"\bnon (?:lo )?(?:so|sappiamo)\b",
        r"\bnon (?:posso|possiamo|riesco a|sono riuscit[oa] a) (?:\w+ ){0,2}?(?:trovare|determinare|sapere|dire)",
        r"\bnon (?:trovo|ho trovato|dispongo|ho)\b(?: \w+){0,3}? (?:informazion|dat|risposta|dettagli|nulla|nessun)",
        (
            r"\b(?:document\w*|contest\w*|test[oi]|font[ei]|brani?|articol\w*|informazion\w*"
            r"|manuale)\b[^.;]{0,40}\bnon "
            r"(?:\w+ )?(?:menziona|contien|conteng|contenut|specific|indica|fornisc|dic|parla|riport)"
        ),
        r"\bnon (?:\w+ )?(?:menziona|menzionano|menzionat\w|specificat\w)\b",
        r"\bnon (?:ci sono|c'è|è presente|sono presenti) (?:\w+ ){0,2}(?:informazion|risposta|dettagli|menzion)",
        r"\bnessuna? (?:informazione|risposta|menzione|documento|risultato)\b",
    ),
    _POLICY: (
        (
            r"\bnon (?:ti |le |vi )?(?:posso|sono in grado di|possiamo) (?:\w+ )?(?:aiutar|assister|fornir|risponder"
            r"|soddisfar)"
        ),
        r"\bcome (?:\w+ )?(?:ia|modello|assistente)\b[^.;]{0,60}\bnon\b",
    ),
}
PORTUGUESE: LanguageForms = {
    _QUESTION: (
        (
            r"\b(?:qual|quais|que|quem)\b[^.?!]{0,60}\b(?:se refere|está se referindo|quer dizer|está falando"
            r"|te referes)\b"
        ),
        r"\b(?:poderia|pode|podes|poderias)\b[^.?!]{0,30}\b(?:esclarecer|especificar|precisar|reformular|dizer qual)",
        r"^(?:ou )?(?:você )?(?:quer dizer|se refere|está se referindo)\b[^.]{0,200}\?",
    ),
    _NOTHING: (
        r"\bnão (?:o )?(?:sei|sabemos)\b",
        r"\bnão (?:posso|podemos|consigo|consegui|foi possível) (?:\w+ ){0,2}?(?:encontrar|determinar|saber|dizer)",
        (
            r"\bnão (?:encontrei|encontramos|tenho|temos|disponho)\b(?: \w+){0,3}? (?:informaç|dados|resposta"
            r"|detalhes|nada)"
        ),
        (
            r"\b(?:document\w*|contexto|textos?|fontes?|trechos?|artigos?|informaç\w*|manual)\b[^.;]{0,40}\bnão "
            r"(?:é |são "
            r"|se |está )?(?:mencion|contém|contêm|especific|indica|fornec|diz|inclu|abord|fala)"
        ),
        r"\bnão (?:é |são |se |foi )?(?:mencionad|especificad|menciona|mencionam)",
        r"\bnão há (?:\w+ )?(?:informaç|dados|menção|resposta)",
        r"\bnenhuma? (?:informação|resposta|menção|documento|resultado)\b",
    ),
    _POLICY: (
        r"\bnão (?:te |lhe |o )?(?:posso|consigo|podemos) (?:\w+ )?(?:ajud|auxili|fornec|respond|atend|ajudá)",
        r"\bcomo (?:\w+ )?(?:ia|modelo|assistente)\b[^.;]{0,60}\bnão\b",
    ),
}
