"""Prompts for language models: templates per language, untrusted text in fences, long shared parts first.

A language is a folder of text files. The user can name a packaged language or give a folder with the same files:
`system.txt`, `answer_choice.txt`, `answer_json.txt` and one `<kind>.txt` per kind of question. In the file of a kind,
a line `{context}`, `{question}`, `{response}`, `{reference}`, `{claim}` or `{rubric}` is replaced by that text in its
fence, and `{texts}` by all texts of the sample; `{answer}` is replaced by the instructions on how to answer,
`{instructions}` by the user's definition or rubric, and `{count}` by the number of questions to generate. The line of a
text that a sample does not have is omitted.
"""
