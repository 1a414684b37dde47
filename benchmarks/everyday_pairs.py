"""Handbook statements with faithful and false retellings, written for this project to fit the built-in judge.

Public data has few short premises and few claims that differ from their premise by one word; this file has little else.
"""

EVERYDAY_PAIRS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "Full-time employees receive 25 days of paid vacation per calendar year.",
        (
            "Full-time staff get 25 paid vacation days each year.",
            "Employees working full time have 25 days of paid vacation a year.",
            "Twenty-five days of paid vacation are granted to full-time employees every year.",
        ),
        (
            "Full-time employees receive 30 days of paid vacation per calendar year.",
            "Full-time employees do not receive paid vacation.",
            "Part-time employees receive 25 days of paid vacation per calendar year.",
            "Full-time employees receive 25 days of unpaid vacation per calendar year.",
        ),
    ),
    (
        "Expense reports must be submitted by March 14.",
        (
            "Expense reports have to be submitted by 14 March.",
            "The deadline for expense reports is March 14.",
        ),
        (
            "Expense reports must be submitted by March 24.",
            "Expense reports must be submitted by April 14.",
            "Expense reports do not have to be submitted by March 14.",
        ),
    ),
    (
        "Travel requests are approved by Maria Lopez in the finance department.",
        (
            "Maria Lopez approves travel requests.",
            "Maria Lopez from finance approves requests for travel.",
        ),
        (
            "Travel requests are approved by Peter Schmidt in the finance department.",
            "Travel requests are not approved by Maria Lopez.",
            "Peter Schmidt approves travel requests.",
        ),
    ),
    (
        "The office is open from Monday to Friday between 8:00 and 18:00.",
        (
            "The office is open Monday to Friday from 8:00 to 18:00.",
            "Office hours are 8 to 18 from Monday to Friday.",
        ),
        (
            "The office is open from Monday to Saturday between 8:00 and 18:00.",
            "The office is open from Monday to Friday between 9:00 and 17:00.",
            "The office is closed from Monday to Friday.",
        ),
    ),
    (
        "The deductible under the Standard plan is $1,000 per year, while the Plus plan has no deductible.",
        (
            "The Standard plan has a yearly deductible of $1000.",
            "There is no deductible under the Plus plan.",
        ),
        (
            "The Standard plan has a yearly deductible of $2,000.",
            "There is no deductible under the Standard plan.",
        ),
    ),
    (
        "Employees may work remotely up to two days a week if their manager agrees.",
        (
            "With their manager's agreement, employees may work remotely two days a week.",
            "Employees can work remotely up to 2 days per week if the manager agrees.",
        ),
        (
            "Employees may work remotely up to four days a week if their manager agrees.",
            "Employees may not work remotely.",
            "Employees may work remotely up to two days a month if their manager agrees.",
        ),
    ),
    (
        "Unused vacation days can not be carried over to the next year.",
        (
            "Unused vacation days cannot be carried over into the following year.",
            "Vacation days that are not used can't be carried over.",
        ),
        (
            "Unused vacation days can be carried over to the next year.",
            "Employees can carry over unused vacation days.",
        ),
    ),
    (
        "New hires enrol in the health plan within 30 days of their start date.",
        (
            "New hires must enrol in the health plan within thirty days of starting.",
            "Enrolment in the health plan happens within 30 days of the start date for new hires.",
        ),
        (
            "New hires enrol in the health plan within 60 days of their start date.",
            "New hires enrol in the health plan within 30 weeks of their start date.",
        ),
    ),
    (
        "The Berlin office was opened in 2015 and employs 120 people.",
        (
            "The Berlin office opened in 2015.",
            "120 people work at the Berlin office.",
            "The office in Berlin employs 120 people.",
        ),
        (
            "The Berlin office was opened in 2018 and employs 120 people.",
            "The Munich office was opened in 2015 and employs 120 people.",
            "The Berlin office was closed in 2015.",
            "The Berlin office employs 150 people.",
        ),
    ),
    (
        "Sick leave longer than three days requires a doctor's certificate.",
        (
            "A doctor's certificate is required for sick leave of more than three days.",
            "If sick leave lasts longer than 3 days, a doctor's certificate is required.",
        ),
        (
            "A doctor's certificate is not required for sick leave longer than three days.",
            "Sick leave longer than five days requires a doctor's certificate.",
            "Sick leave shorter than three days requires a doctor's certificate.",
        ),
    ),
    (
        "The company matches 401(k) contributions up to 4% of salary.",
        (
            "Contributions to the 401(k) are matched by the company up to 4 percent of salary.",
            "The company matches up to 4% of salary in 401(k) contributions.",
        ),
        (
            "The company matches 401(k) contributions up to 6% of salary.",
            "The company does not match 401(k) contributions.",
        ),
    ),
    (
        "Passwords must be changed every 90 days and must never be shared with colleagues.",
        (
            "Passwords have to be changed every 90 days.",
            "Passwords must never be shared with colleagues.",
            "Employees must not share passwords with colleagues.",
        ),
        (
            "Passwords must be changed every 30 days.",
            "Passwords may be shared with colleagues.",
            "Passwords do not have to be changed every 90 days.",
        ),
    ),
    (
        "Dr. Anna Weber leads the research team in Zurich.",
        (
            "The research team in Zurich is led by Dr. Anna Weber.",
            "Anna Weber leads the research team in Zurich.",
        ),
        (
            "Dr. Anna Weber leads the research team in Geneva.",
            "The research team in Zurich is led by Dr. Tom Keller.",
            "Dr. Anna Weber does not lead the research team in Zurich.",
        ),
    ),
    (
        "Overtime is paid at 150 percent of the regular hourly rate.",
        (
            "Overtime is paid at 150% of the regular hourly rate.",
            "For overtime, employees get 150% of their regular hourly rate.",
        ),
        (
            "Overtime is paid at 200 percent of the regular hourly rate.",
            "Overtime is not paid.",
            "Overtime is paid at 150 percent of the regular daily rate.",
        ),
    ),
    (
        "Parental leave lasts 16 weeks for both parents and is fully paid.",
        (
            "Both parents get 16 weeks of fully paid parental leave.",
            "Parental leave is 16 weeks long and fully paid.",
        ),
        (
            "Parental leave lasts 12 weeks for both parents and is fully paid.",
            "Parental leave lasts 16 weeks for both parents and is unpaid.",
            "Parental leave is not paid.",
        ),
    ),
    (
        "The cafeteria serves hot meals from 11:30 to 14:00 on weekdays.",
        (
            "Hot meals are served in the cafeteria on weekdays from 11:30 to 14:00.",
            "On weekdays the cafeteria serves hot meals until 14:00.",
        ),
        (
            "The cafeteria serves hot meals from 12:30 to 14:00 on weekdays.",
            "The cafeteria does not serve hot meals on weekdays.",
            "The cafeteria serves cold meals from 11:30 to 14:00 on weekends.",
        ),
    ),
    (
        "Customers can return a product within 60 days of delivery if it is in its original packaging.",
        (
            "A product in its original packaging can be returned within 60 days of delivery.",
            "Customers have sixty days after delivery to return a product in its original packaging.",
        ),
        (
            "Customers can return a product within 14 days of delivery.",
            "Customers can not return a product.",
            "A product in its original packaging can be returned within 60 weeks of delivery.",
        ),
    ),
    (
        "The warranty covers manufacturing defects but not damage caused by water.",
        (
            "Manufacturing defects are covered by the warranty.",
            "Damage caused by water is not covered by the warranty.",
            "The warranty does not cover water damage.",
        ),
        (
            "The warranty does not cover manufacturing defects.",
            "The warranty covers damage caused by water.",
            "Water damage is covered by the warranty.",
        ),
    ),
    (
        "Laura Becker took over as head of logistics from Hans Vogel in June 2021.",
        (
            "In June 2021, Laura Becker became head of logistics.",
            "Laura Becker took over from Hans Vogel as head of logistics.",
        ),
        (
            "Laura Becker took over as head of logistics in June 2019.",
            "Laura Becker took over as head of logistics in July 2021.",
            "Petra Braun took over as head of logistics from Hans Vogel in June 2021.",
        ),
    ),
    (
        "Visitors must register at reception and wear a badge at all times.",
        (
            "Visitors have to register at reception.",
            "A badge must be worn by visitors at all times.",
            "All visitors must wear a badge.",
        ),
        (
            "Visitors do not have to register at reception.",
            "Visitors never wear a badge.",
            "Visitors need not wear a badge.",
        ),
    ),
    (
        "The annual budget for training is 2,000 euros per employee.",
        (
            "Each employee has an annual training budget of 2000 euros.",
            "The training budget is 2,000 euros a year for every employee.",
        ),
        (
            "Each employee has an annual training budget of 3000 euros.",
            "The monthly budget for training is 2,000 euros per employee.",
            "The annual budget for training is 20,000 euros per employee.",
        ),
    ),
    (
        "Invoices above 10,000 dollars need two signatures; smaller ones need one.",
        (
            "Invoices of more than 10,000 dollars need two signatures.",
            "Two signatures are needed for invoices above $10,000.",
        ),
        (
            "Invoices above 10,000 dollars need three signatures.",
            "Invoices below 10,000 dollars need two signatures.",
            "Invoices above 50,000 dollars need two signatures.",
        ),
    ),
    (
        "Data backups run every night and are kept for 12 months in Dublin.",
        (
            "Data backups are run nightly and kept for 12 months.",
            "Backups are kept in Dublin for twelve months.",
            "Every night, data backups run.",
        ),
        (
            "Data backups are kept for 6 months in Dublin.",
            "Data backups are kept for 12 months in Oslo.",
            "Data backups are not kept.",
            "Data backups run every week.",
        ),
    ),
    (
        "The library is closed on public holidays.",
        (
            "On public holidays, the library is closed.",
            "The library is not open on public holidays.",
        ),
        (
            "The library is open on public holidays.",
            "The library is not closed on public holidays.",
            "The museum is closed on public holidays.",
        ),
    ),
    (
        "Applicants without a driving licence can not be hired as couriers.",
        (
            "Couriers need a driving licence.",
            "Applicants can not be hired as couriers without a driving licence.",
        ),
        (
            "Applicants without a driving licence can be hired as couriers.",
            "Couriers do not need a driving licence.",
        ),
    ),
    (
        "The project started in spring 2020 and ended two years later with a budget of 1.5 million euros.",
        (
            "The project started in spring 2020.",
            "The project had a budget of 1.5 million euros.",
            "The budget of the project was 1,500,000 euros.",
        ),
        (
            "The project started in spring 2022.",
            "The project had a budget of 2.5 million euros.",
            "The project ended in spring 2020.",
        ),
    ),
    (
        "Interns are entitled to free lunch but not to a company car.",
        (
            "Interns get free lunch.",
            "Interns are not entitled to a company car.",
            "Free lunch is provided for interns.",
        ),
        (
            "Interns are entitled to a company car.",
            "Interns are not entitled to free lunch.",
            "Interns get a company car.",
        ),
    ),
    (
        "Only the security team, led by Omar Haddad, may unlock the server room.",
        (
            "The security team may unlock the server room.",
            "Omar Haddad leads the security team.",
        ),
        (
            "The security team may not unlock the server room.",
            "Ines Moreau leads the security team.",
            "The security team is led by Ines Moreau.",
        ),
    ),
)
"""Premise, claims that it supports, claims that it does not."""
