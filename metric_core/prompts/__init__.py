"""How questions are put to a language model: template files a language, untrusted text fenced, long shared parts first.

A language is a folder of text files. The user may name a packaged one or give a folder of their own with the same
files: `system.txt`, `answer_choice.txt`, `answer_json.txt` and one `<kind>.txt` a kind of question. In a kind's file a
line `{context}`, `{question}`, `{response}`, `{reference}`, `{claim}` or `{rubric}` stands for that text in its fence,
`{texts}` for all texts of the sample; `{answer}` for the line that says how to answer, `{instructions}` for the user's
definition or rubric, `{count}` for the number of questions wanted. A text that a sample does not have takes its line
with it.
"""
