"""Count how often a model writes words of the examples in its prompts instead of what it was asked about.

    python -m benchmarks.prompt_leaks http://localhost:8000/v1 --words "Orla|Tarn" --prompts en mine

Asks a server for the claims of the example's responses, and for questions that they answer, with each set of prompts.
"""

import argparse
import json
import re
from pathlib import Path

from metric_core.prompts.judge_questions import GenerateQuestion, ask_claims, ask_questions
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions

ROWS = Path(__file__).parents[1] / "examples" / "handbook.jsonl"


def main() -> None:
    """Print, for each set of prompts and kind of question, how many replies are usable and how many have the words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="the /v1 URL of a server")
    parser.add_argument("--words", required=True, help="pattern of words that only the examples have")
    parser.add_argument("--prompts", nargs="+", default=["en"], help="languages or folders of prompts")
    parser.add_argument("--rows", type=int, default=24)
    options = parser.parse_args()
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()[: options.rows]]
    kinds: dict[str, list[GenerateQuestion]] = {
        "claims": [ask_claims(row["response"], row["user_input"]) for row in rows],
        "questions": [ask_questions(row["response"], 3) for row in rows],
    }
    print(f"{'prompts':24}{'kind':12}{'asked':>8}{'usable':>8}{'with words':>12}{'tokens':>9}")
    for name in options.prompts:
        settings = ServerJudgeOptions(urls=(options.url,), prompts=name, max_output_tokens=400, concurrency=16)
        judge = OpenAIJudge(settings)
        for kind, questions in kinds.items():
            answers = judge.generate(questions)
            usable = [answer for answer in answers if answer.value is not None]
            texts = [json.dumps(answer.value) if answer.value is not None else answer.reply or "" for answer in answers]
            found = sum(re.search(options.words, text) is not None for text in texts)
            tokens = sum(answer.usage.output_tokens for answer in answers)
            print(f"{Path(name).name:24}{kind:12}{len(questions):8}{len(usable):8}{found:12}{tokens:9}")
        judge.close()


if __name__ == "__main__":
    main()
