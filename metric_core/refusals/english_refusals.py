"""The forms of English refusals: who is unable to do what, or which source lacks what.

Patterns are for text as `metric_core.refusals.refusal_forms` prepares it: lower case, straight apostrophes. Gaps
between words are bounded, so that looking for a form takes time linear in the text.
"""

from metric_core.refusals.refusal_kinds import LanguageForms, RefusalKind

_SOURCE = (
    r"(?:contexts?|documents?|documentation|information|info|knowledge base|passages?|sources?|texts?|excerpts?"
    r"|articles?|data|content|handbook|manual|snippets?|paragraphs?|sections?|search results?|materials?|pages?|files?)"
)
_FACT = (
    r"(?:information|info|details?|specifics|data|answers?|mention|knowledge|idea|clue|records?|references?"
    r"|documents?|documentation|passages?|sources?|results?|matches|context|content|articles?|recommendations?|access)"
)
_MISSING = (
    r"(?:(?:information|info|details?|specifics|data|answers?|mention)(?:\W*$| (?:about|on|in|to|regarding|concerning"
    r"|for|from|within|at|that|which|of|as|provided|available|given|found|here|whether|related|relating)\b)"
    r"|(?:documents?|documentation|passages?|contexts?|sources?|articles?|results?|records?|content)(?:\W*$"
    r"| (?:about|on|regarding|concerning|that|which|provided|available|found|returned|retrieved|related)\b))"
)
"""A fact or source that is missing, and not the first part of another noun: "there is no data limit" is an answer."""
_ANSWER = r"(?:answers?|information|info|details?|question|query|that|this|it)"
_TELLS = (
    r"(?:contain|provide(?! for)|mention|includ|specif|state|say|address|give|discuss|cover|indicat|describe|list|offer"
    r"|answer|explain|help|reveal|clarif|hold|tell|elaborate|have|make|relate|appear|seem|name|touch|refer)"
)
_TOLD = (
    r"(?:mentioned|specified|stated|provided|given|available|found|discussed|included|addressed|clear|covered"
    r"|contained|present|described|listed|answered|explained|indicated|known|disclosed|answerable|sufficient|enough)"
)
_NOT = r"(?: not|n't)"
_UNABLE = (
    r"(?:can ?not|can't|could not|couldn't|(?:am|'m|are|'re|was|were) (?:\w+ )?(?:unable to|not able to)"
    r"|(?:will not|won't|would not|wouldn't) be able to)"
)
_LEARN = r"(?:find|locate|determine|see|tell|say|identify|confirm|verify|infer|retrieve|know|be (?:sure|certain))"
_HELP = (
    r"(?:assist|help|fulfil+|comply|provide|offer|give|share|answer|respond|discuss|engage|participate|support|advise"
    r"|recommend|suggest|generate|create|write|produce|condone|promote|encourage|endorse|satisfy|continue|complete"
    r"|process|accommodate|address|speculate|comment|make|take part|do (?:that|this|so)|disclose|reveal|access"
    r"|facilitate|teach|instruct|guide|entertain|agree|express|describe|explain|judge|justify)"
)
_SELF = (
    r"(?:(?:any|the|an?) )?(?:personal|opinions?|beliefs?|feelings|emotions|ability|capability|capacity|preferences"
    r"|authori[sz]ation|permission|access to (?:\w+ )?(?:personal|private|confidential))\b"
)
_IDIOM = r"(?:wait|help but|stress|emphasi[sz]e|overst|imagine|believe|complain|thank|recommend \w+ enough)"
_MORAL = (
    r"(?:appropriate|ethical|acceptable|respectful|safe|legal|responsible|productive|constructive|ok|okay|healthy"
    r"|justifiable|moral)"
)
_JUDGED = rf"(?:accurate|fair|right|productive|{_MORAL})"
_OPENING = (
    r"^(?:(?:i am |i'm |we're |we are )?(?:\w+ )?sorry,? |unfortunately,? |apologies,? |but |regrettably,? ){0,3}"
)

_CLARIFYING_QUESTIONS = (
    (
        r"\b(?:which|what|whom?|whose|where|when)\b[^.?!]{0,60}\b(?:(?:are|do|did|were|have|is|would)(?: it)? you"
        r"|(?:is|are) your)\b(?! (?:think|feel|like))[^.!]{0,200}\?"
    ),
    (
        r"\b(?:could|can|would|may|might|will) (?:you|i) (?:please |kindly |also ){0,2}(?:clarify|specify|elaborate"
        r"|rephrase|be more specific|be more precise|narrow|(?:tell me|let me know) (?:which|what|who|where|when|more"
        r"|whether|if)|(?:provide|give|share)(?: me)?(?: with)? (?:more|further|additional|a (?:bit|little) more"
        r"|some more)|explain what|ask (?:which|what|you to|who))"
    ),
    (
        r"\b(?:please|kindly) (?:clarify|specify|rephrase|be more specific|tell me (?:which|what)"
        r"|provide (?:me )?(?:with )?(?:more|further|additional))"
    ),
    r"^(?:or |so )?(?:do|did) you mean\b",
    r"^(?:or |so )?are you (?:\w+ )?(?:referring|asking|talking|thinking|looking for)\b",
    (
        r"\byour (?:question|query|request) (?:is|seems|appears|could|may|might) (?:\w+ ){0,2}(?:unclear"
        r"|ambiguous|vague|incomplete|too (?:broad|vague|general)|refer)"
    ),
    r"\b(?:i|we)(?: would|'d|'ll| will)? need (?:\w+ ){0,2}(?:more|clarif|additional|further)\w*\b",
    (
        r"\bi(?:'m| am| do| did| was)?(?: not|n't) (?:\w+ )?(?:sure|clear|certain|understand|know)"
        r" (?:(?:which|what|whom?) you|(?:the|your) question)\b"
    ),
)
_NOTHING_FOUND = (
    (
        r"\b(?:i|we) (?:\w+ )?(?:do not|don't|did not|didn't) (?:\w+ )?(?:know|see|find|possess|recall|remember"
        r"|understand)\b"
    ),
    rf"\b(?:i|we) (?:\w+ )?(?:do not|don't|did not|didn't) (?:\w+ )?have (?!{_SELF})(?:\w+ ){{0,4}}?{_FACT}\b",
    rf"\bi (?:do not|don't) (?:\w+ )?have (?!to\b|{_SELF})",
    r"\b(?:beyond|outside) (?:of )?my knowledge\b",
    r"\b(?:no way (?:to|of)|hard to|impossible to) (?:know(?:ing)?|say|tell)(?: for (?:sure|certain))?\W*$",
    rf"\b(?:i|we)(?: have|'ve)? (?:\w+ )?(?:found|have|see|know of) (?:no|limited|little) (?:\w+ ){{0,3}}{_FACT}\b",
    rf"\b(?:i|we) (?:have not|haven't) (?:\w+ )?(?:found|been given|seen|received) (?:\w+ ){{0,3}}{_FACT}\b",
    rf"\b(?:i|we)(?: \w+ly)? ?{_UNABLE} (?:\w+ )?{_LEARN}\b",
    (
        r"\b(?:i|we)(?:'m| am| are|'re) (?:\w+ )?(?:not (?:\w+ )?(?:sure|certain|aware|familiar)|un(?:sure|certain"
        r"|aware|familiar))\b"
    ),
    r"^(?:that|this|it)(?:'s| is) (?:not (?:something )?|nothing )(?:that )?i (?:\w+ )?(?:know|have)\b",
    rf"{_OPENING}(?:unable to|not able to|can ?not|can't|could not|couldn't) (?:be )?(?:\w+ )?{_LEARN}\b",
    (
        rf"(?:\b(?:i|we)(?: \w+ly)? ?{_UNABLE}|{_OPENING}(?:unable to|not able to|can ?not|can't)"
        r"|\bit(?:'s| is) (?:not possible|impossible) to)"
        rf"[^.;]{{0,80}}\b(?:based on|from|given|using|(?:in|with) (?:the|this|these|any|your|my)) "
        rf"(?:\w+ ){{0,3}}?{_SOURCE}\b"
    ),
    (
        rf"^(?:based on|given|from|according to|with)\b[^.;]{{0,60}}\b{_SOURCE}\b[^.;]{{0,40}}\b(?:i|we)"
        rf"(?: \w+ly)? ?{_UNABLE}\b"
    ),
    rf"\b{_SOURCE}\b[^.;]{{0,40}}? (?:do|does|did){_NOT}(?: \w+){{0,2}}? {_TELLS}",
    (
        rf"\b{_SOURCE} (?:\w+ ){{0,2}}?(?:is|are|was|were){_NOT} (?:\w+ )?(?:relevant|helpful|enough|sufficient"
        rf"|clear|explicit|relat)"
    ),
    (
        rf"\b{_SOURCE}\b[^.;]{{0,40}}? (?:lacks?|fails? to|contains? no|provides? no|gives? no|makes? no|has no|have no"
        r"|has nothing|have nothing|includes? no|offers? no|says? nothing|(?:is|are) silent|cannot|can't)\b"
    ),
    rf"\b(?:none of|neither|no) (?:\w+ ){{0,3}}?{_SOURCE} (?:\w+ )?{_TELLS}",
    rf"\b(?:i|we) (?:\w+ )?lack (?:\w+ ){{0,3}}?{_FACT}\b",
    (
        r"\bthere(?:(?: is|'s| are| was| were) (?:\w+ly )?(?:no|not|insufficient|nothing)| isn't| aren't)"
        rf"(?: [\w-]+){{0,3}}? {_MISSING}"
    ),
    (
        r"\bthere(?: is|'s| are| was| were) (?:no|nothing) [^.;]{0,60} (?:mentioned|specified|stated|provided"
        rf"|(?:in|on|about)(?: \w+){{0,4}}? {_SOURCE})\b"
    ),
    (
        rf"{_OPENING}(?:no|not enough|insufficient)(?: [\w-]+){{0,3}}? {_FACT}(?:(?: \w+){{0,8}}? (?:{_TOLD}|returned"
        r"|retrieved|located|identified)\b|(?: (?:on|about|regarding)(?: \w+){1,4})?\W*$)"
    ),
    rf"\bno (?:\w+ ){{0,2}}(?:information|mention|details?|answer)(?: \w+){{0,4}} {_TOLD}\b",
    r"\bno mention (?:of|is made)\b",
    rf"\bthere (?:does|do|did){_NOT} (?:seem|appear) to be (?:\w+ ){{0,3}}?{_FACT}\b",
    r"\b(?:is|are|was|were)(?: not|n't) (?:\w+ly )?(?:mentioned|specified|stated)\b",
    r"\b(?:i|we) neither (?:have|know|found|see)\b",
    r"\b(?:i|we) (?:did not|didn't|have not|haven't) come across\b",
    r"\b(?:i|we)(?: have|'ve) (?:nothing|no (?:idea|clue|answer|record|way)) (?:on|about|for|of|to)\b",
    r"^not (?:that i(?:'m| am)? (?:know|aware)|to my knowledge)\b",
    (
        rf"(?:\bnot|\bnever|n't) (?:\w+ )?(?:to be )?{_TOLD} (?:\w+ )?(?:in|by|from|within|on) "
        rf"(?:\w+ ){{1,4}}?{_SOURCE}\b"
    ),
    r"\bnot (?:\w+ )?(?:mentioned|specified|stated) (?:\w+ )?(?:in|by|from|within|on) (?:the|this|these|any|my|your)\b",
    (
        rf"^(?:the |an |your |no )?(?:\w+ )?{_ANSWER}\b[^.;]{{0,60}} (?:is|was|are|were|can|could)(?:{_NOT}|not) "
        rf"(?:be )?(?:\w+ )?(?:(?:in|within|part of)(?: \w+){{1,4}}? {_SOURCE}|{_TOLD}(?: to me| here| from (?:this"
        rf"|these))?\W*$)"
    ),
    (
        rf"^(?:the )?(?:\w+ )?(?:answer|information|details|question)(?: is| was)? (?:not (?:\w+ )?{_TOLD}"
        rf"|unanswerable|unavailable)\b"
    ),
    r"\b(?:can ?not|could not|can't|couldn't) be (?:determined|answered|found|inferred|verified|located)\b",
    r"\binsufficient (?:information|context|data|evidence)\b",
    r"^(?:it is|it's|that is|this is) (?:unclear|unknown|not known|not clear|not possible to (?:say|tell|know))\b",
    (
        rf"{_OPENING}(?:unknown|unanswerable|n/?a|not sure|none|no (?:idea|clue|answer|results?)|not (?:\w+ )?"
        rf"(?:{_TOLD}|applicable))\W*$"
    ),
    rf"{_OPENING}nothing (?:\w+ ){{0,3}}(?:{_SOURCE}|found|mentioned|stated|said|known)\b",
)
_POLICY_REFUSALS = (
    rf"\bi(?: \w+ly)? ?{_UNABLE} (?!{_IDIOM})\w+",
    (
        rf"\bwe(?: \w+ly)? ?{_UNABLE} (?:\w+ )?(?:assist|help|answer|respond|comply|fulfil+ (?:this|that"
        rf"|your) request|comment)\b"
    ),
    (
        r"\bi(?:'d| would)? (?:\w+ )?(?:will not|won't|would not|wouldn't|may not|must not|shouldn't|should not"
        r"|do not|don't"
        rf"|could not|couldn't|rather not|prefer not to) (?:\w+ )?{_HELP}\b"
    ),
    (
        r"\bi(?: am|'m) (?:\w+ )?not (?:\w+ )?(?:allowed|permitted|authori[sz]ed|programmed|designed|comfortable"
        r"|going|willing|able|capable|in a position|at liberty|trained|qualified|equipped)\b"
    ),
    r"\bi (?:do not|don't) (?:\w+ )?feel comfortable\b",
    r"\bi(?: am|'m) (?:\w+ )?(?:unable|incapable)\b",
    (
        r"(?:\bnot|n't) (?:something|a topic|a question|anything) (?:that )?i(?: can|'m able| am able|'m allowed"
        r"| am allowed)\b"
    ),
    r"\bi(?: can|'m| am)(?: able to)? only (?:able to )?(?:answer|help|assist|discuss|provide|respond)\b",
    r"\bi (?:must|have to|need to|will have to|respectfully|politely) (?:\w+ )?(?:decline|refuse)\b",
    r"\bi (?:decline|refuse) to\b",
    r"^request (?:denied|refused|declined)\b",
    rf"{_OPENING}(?:unable to|not able to|can ?not|can't|won't) (?:\w+ )?{_HELP}\b",
    r"\bi (?:do not|don't|can ?not|can't|strongly) (?:\w+ )?(?:condone|condemn|endorse|promote|tolerate)\b",
    (
        r"\bi (?:do not|don't) (?:\w+ )?(?:have|hold|possess|form) "
        rf"{_SELF}"
    ),
    (
        r"\bas an? (?:\w+ ){0,3}?(?:ai|language model|assistant|chatbot)\b[^.;]{0,60}\bi (?:\w+ )?(?:do not|don't"
        r"|can ?not|can't|am not|am unable)\b"
    ),
    (
        r"\bi(?: am|'m) (?:just |only |simply )?an? (?:\w+ ){0,2}?(?:ai|language model|assistant|chatbot)\b[^.;]{0,60}"
        r"(?:\bnot\b|n't\b|\bcannot\b|\bunable\b)"
    ),
    rf"\b(?:not|never) (?:\w+ )?{_MORAL} for me to\b",
    rf"\bit(?:'s| is| would be)?(?: not|n't| never) (?:\w+ )?{_JUDGED},? (?:or|and|nor) (?:\w+ )?{_JUDGED} to\b",
    (
        rf"\bit(?:'s| is| would be)?(?: not|n't| never) (?:\w+ )?{_MORAL} to (?:ask (?:an?|for|such|me|this|that|why"
        rf"|how)"
        r"|discuss (?:or|methods|ways|how|such|this)|provide (?:or|you|information|instructions|advice|such)"
        r"|promote|speculate|generali[sz]e|make (?:\w+ )?(?:assumptions|generali[sz]ations|jokes)"
        r"|(?:suggest|say|assume|imply|claim) that)\b"
    ),
    (
        rf"\b(?:asking|requesting)\b[^.;]{{0,80}}\b(?:is|are) (?:inappropriate|unethical|(?:not|never) "
        rf"(?:\w+ )?{_MORAL})\b"
    ),
    rf"\bi (?:do not|don't) (?:\w+ )?(?:think|believe|feel) (?:that )?(?:it(?: is|'s|'d be| would be) )?{_MORAL}\b",
    (
        r"\bi (?:must|have to|need to|would like to|want to) (?:\w+ )?(?:emphasi[sz]e|clarify|point out|inform|remind"
        r"|stress|express|note|address|caution)\b[^.;]{0,120}"
        rf"\b(?:illegal|unethical|inappropriate|offensive|not (?:\w+ )?{_MORAL})\b"
    ),
    (
        r"\b(?:the|this|your|that) (?:question|request|prompt|query)\b[^.;]{0,40}\b(?:is|are|contains?|promotes?|seems"
        r"|implies|may be) (?:\w+ ){0,3}?(?:inappropriate|offensive|unethical|harmful|discriminatory|illegal"
        r"|stereotypes?"
        rf"|not (?:\w+ )?{_MORAL})\b"
    ),
    (
        r"\bmy (?:programming|guidelines|training|polic(?:y|ies)|instructions|role|developers?|creators?)\b[^.;]{0,30}"
        r"(?:\bnot\b|n't\b|\b(?:prevents?|prohibits?|forbids?|restricts?)\b)"
    ),
    r"\bi(?: am|'m) (?:programmed|designed|required|trained|instructed) (?:to (?:avoid|refrain|not)|not to)\b",
    (
        r"\b(?:against|outside|beyond|within|violates?|contrary to|conflicts? with) (?:of )?(?:my|our|the scope of"
        r"|content|usage|company)(?: \w+){0,2}? (?:programming|guidelines?|polic(?:y|ies)|principles|scope"
        r"|capabilities|remit|guardrails|rules|instructions|what i can)\b"
    ),
)

ENGLISH: LanguageForms = {
    RefusalKind.CLARIFYING_QUESTION: _CLARIFYING_QUESTIONS,
    RefusalKind.NOTHING_FOUND: _NOTHING_FOUND,
    RefusalKind.POLICY_REFUSAL: _POLICY_REFUSALS,
}
