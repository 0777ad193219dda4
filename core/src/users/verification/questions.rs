//! The AMLD5 questionnaire (Directive (EU) 2018/843): six topics, closed options, five languages.
//!
//! Answers are sent as an option's text in any language and stored by the option's key, so that a
//! text can be corrected later. Keys never change.

mod page_texts;

use std::collections::BTreeMap;

use rampart_types::Language;

use crate::http::language;

/// Texts in the order of [`Language::ALL`]: nl, en, de, fr, es.
type Texts = [&'static str; Language::ALL.len()];

/// The kind of user that a question applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    People,
    Businesses,
    Both,
}

/// One question.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) key: &'static str,
    audience: Audience,
    label: Texts,
    options: &'static [Choice],
}

/// An option of a question.
#[derive(Debug)]
struct Choice {
    key: &'static str,
    text: Texts,
}

const fn choice(key: &'static str, text: Texts) -> Choice {
    Choice { key, text }
}

/// An option with the same text in every language.
const fn same(key: &'static str, text: &'static str) -> Choice {
    Choice { key, text: [text; Language::ALL.len()] }
}

impl Question {
    /// True if it applies to a business (or else to a person).
    pub(crate) fn is_for(&self, business: bool) -> bool {
        match self.audience {
            Audience::Both => true,
            Audience::Businesses => business,
            Audience::People => !business,
        }
    }

    /// The question's text.
    pub(crate) fn label(&self, language: Language) -> &'static str {
        text(&self.label, language)
    }

    /// The texts of its options.
    pub(crate) fn options(&self, language: Language) -> Vec<&'static str> {
        self.options.iter().map(|option| text(&option.text, language)).collect()
    }

    /// The question's text on a page.
    pub(crate) fn page_label(&self, language: language::Language) -> &'static str {
        page_texts::find(language, self.key, None)
            .unwrap_or_else(|| self.label(api_language(language)))
    }

    /// Keys and texts of its options on a page.
    pub(crate) fn page_options(
        &self,
        language: language::Language,
    ) -> Vec<(&'static str, &'static str)> {
        let text_of = |option: &Choice| {
            page_texts::find(language, self.key, Some(option.key))
                .unwrap_or_else(|| text(&option.text, api_language(language)))
        };
        self.options.iter().map(|option| (option.key, text_of(option))).collect()
    }

    /// True if an option has this key.
    pub(crate) fn has_option(&self, key: &str) -> bool {
        self.options.iter().any(|option| option.key == key)
    }
}

/// The language of the API that a page's is; English for the others.
fn api_language(language: language::Language) -> Language {
    language.code().parse().unwrap_or_default()
}

fn text(texts: &Texts, language: Language) -> &'static str {
    Language::ALL.into_iter().zip(texts).find(|(known, _)| *known == language).map_or("", |f| f.1)
}

/// Finds the key of the option with this text in any language; `None` when there is no such question
/// or option.
pub(crate) fn find_option(question: &str, text: &str) -> Option<&'static str> {
    let question = QUESTIONS.iter().find(|known| known.key == question)?;
    question.options.iter().find(|option| option.text.contains(&text)).map(|option| option.key)
}

/// The questions for this kind of user without a valid answer in `answers` (question to option).
pub(crate) fn unanswered(
    business: bool,
    answers: &BTreeMap<String, String>,
) -> impl Iterator<Item = &'static Question> {
    QUESTIONS.iter().filter(move |question| {
        let answered = answers.get(question.key).is_some_and(|key| question.has_option(key));
        question.is_for(business) && !answered
    })
}

/// The questions to ask a user: the open ones, or all again where the answers count no more (`pending`).
pub(crate) fn to_ask(
    business: bool,
    status: &str,
    answers: &BTreeMap<String, String>,
) -> Vec<&'static Question> {
    let open: Vec<_> = unanswered(business, answers).collect();
    match open.is_empty() && status == "pending" {
        true => QUESTIONS.iter().filter(|question| question.is_for(business)).collect(),
        false => open,
    }
}

/// All questions in display order.
pub(crate) const QUESTIONS: &[Question] = &[
    Question {
        key: "kyc-amld5-annual-net-income",
        audience: Audience::People,
        label: [
            "Wat is uw jaarlijkse netto-inkomen?",
            "What is your annual net income?",
            "Wie hoch ist Ihr jährliches Nettoeinkommen?",
            "Quel est votre revenu net annuel ?",
            "¿Cuáles son sus ingresos netos anuales?",
        ],
        options: &[
            same("up-to-10000", "€ 0 - € 10.000"),
            same("up-to-25000", "€ 10.000 - € 25.000"),
            same("up-to-50000", "€ 25.000 - € 50.000"),
            same("up-to-100000", "€ 50.000 - € 100.000"),
            same("above-100000", "> € 100.000"),
        ],
    },
    Question {
        key: "kyc-amld5-annual-net-profit",
        audience: Audience::Businesses,
        label: [
            "Wat is de jaarlijkse nettowinst van het bedrijf?",
            "What is the annual net profit of the business?",
            "Wie hoch ist der jährliche Nettogewinn des Unternehmens?",
            "Quel est le bénéfice net annuel de l’entreprise ?",
            "¿Cuál es el beneficio neto anual de la empresa?",
        ],
        options: &[
            same("up-to-50000", "€ 0 - € 50.000"),
            same("up-to-250000", "€ 50.000 - € 250.000"),
            same("up-to-1000000", "€ 250.000 - € 1.000.000"),
            same("above-1000000", "> € 1.000.000"),
        ],
    },
    Question {
        key: "kyc-amld5-employment-status",
        audience: Audience::People,
        label: [
            "Wat is uw werksituatie?",
            "What is your employment status?",
            "Wie ist Ihre berufliche Situation?",
            "Quelle est votre situation professionnelle ?",
            "¿Cuál es su situación laboral?",
        ],
        options: &[
            choice("employed", ["In loondienst", "Employed", "Angestellt", "Salarié", "Empleado"]),
            choice(
                "self-employed",
                ["Zelfstandig", "Self-employed", "Selbstständig", "Indépendant", "Autónomo"],
            ),
            choice("student", ["Student", "Student", "In Ausbildung", "Étudiant", "Estudiante"]),
            choice("retired", ["Gepensioneerd", "Retired", "Im Ruhestand", "Retraité", "Jubilado"]),
            choice(
                "unemployed",
                ["Werkloos", "Unemployed", "Arbeitslos", "Sans emploi", "Desempleado"],
            ),
        ],
    },
    Question {
        key: "kyc-amld5-main-source-income",
        audience: Audience::Both,
        label: [
            "Wat is de belangrijkste bron van inkomsten?",
            "What is the main source of income?",
            "Was ist die Haupteinkommensquelle?",
            "Quelle est la principale source de revenus ?",
            "¿Cuál es la principal fuente de ingresos?",
        ],
        options: &[
            choice("salary", ["Salaris", "Salary", "Gehalt", "Salaire", "Salario"]),
            choice(
                "business",
                [
                    "Winst uit onderneming",
                    "Business profit",
                    "Unternehmensgewinn",
                    "Bénéfices d’entreprise",
                    "Beneficios empresariales",
                ],
            ),
            choice(
                "investments",
                ["Beleggingen", "Investments", "Kapitalanlagen", "Placements", "Inversiones"],
            ),
            choice(
                "benefits",
                [
                    "Pensioen of uitkering",
                    "Pension or benefits",
                    "Rente oder Sozialleistungen",
                    "Pension ou allocations",
                    "Pensión o prestaciones",
                ],
            ),
            choice(
                "gift-or-inheritance",
                [
                    "Schenking of erfenis",
                    "Gift or inheritance",
                    "Schenkung oder Erbschaft",
                    "Don ou héritage",
                    "Donación o herencia",
                ],
            ),
        ],
    },
    Question {
        key: "kyc-amld5-why-account-created",
        audience: Audience::Both,
        label: [
            "Waarom is dit account aangemaakt?",
            "Why was this account created?",
            "Warum wurde dieses Konto eröffnet?",
            "Pourquoi ce compte a-t-il été créé ?",
            "¿Por qué se ha creado esta cuenta?",
        ],
        options: &[
            choice(
                "investing",
                [
                    "Beleggen op lange termijn",
                    "Long-term investing",
                    "Langfristige Anlage",
                    "Investir à long terme",
                    "Inversión a largo plazo",
                ],
            ),
            choice("trading", ["Handelen", "Trading", "Handel", "Négoce", "Operar en el mercado"]),
            choice(
                "payments",
                [
                    "Betalingen doen",
                    "Making payments",
                    "Zahlungen tätigen",
                    "Effectuer des paiements",
                    "Realizar pagos",
                ],
            ),
            choice(
                "curiosity",
                ["Kennismaken", "Trying it out", "Kennenlernen", "Découvrir", "Probar el servicio"],
            ),
        ],
    },
    Question {
        key: "kyc-amld5-which-industry",
        audience: Audience::Both,
        label: [
            "In welke branche bent u werkzaam?",
            "Which industry do you work in?",
            "In welcher Branche sind Sie tätig?",
            "Dans quel secteur travaillez-vous ?",
            "¿En qué sector trabaja?",
        ],
        options: &[
            choice(
                "finance",
                [
                    "Financiële sector",
                    "Financial services",
                    "Finanzwesen",
                    "Services financiers",
                    "Servicios financieros",
                ],
            ),
            choice(
                "technology",
                ["Technologie en IT", "Technology and IT", "Technik und IT", "Technologie", "TI"],
            ),
            choice(
                "trade",
                [
                    "Handel en horeca",
                    "Retail and hospitality",
                    "Handel und Gastgewerbe",
                    "Commerce et hôtellerie",
                    "Comercio y hostelería",
                ],
            ),
            choice(
                "industry",
                [
                    "Industrie en bouw",
                    "Manufacturing and construction",
                    "Industrie und Bau",
                    "Industrie et construction",
                    "Industria y construcción",
                ],
            ),
            choice(
                "public",
                [
                    "Overheid, zorg en onderwijs",
                    "Government, health and education",
                    "Verwaltung, Gesundheit und Bildung",
                    "Administration, santé et éducation",
                    "Administración, sanidad y educación",
                ],
            ),
            choice("other", ["Anders", "Other", "Andere", "Autre", "Otro"]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_six_topics_and_a_set_for_each_kind_of_user() {
        assert_eq!(QUESTIONS.len(), 6);
        assert!(QUESTIONS.iter().all(|question| question.key.starts_with("kyc-amld5-")));
        let none = BTreeMap::new();
        assert_eq!((unanswered(false, &none).count(), unanswered(true, &none).count()), (5, 4));
    }

    #[test]
    fn a_text_means_one_option_in_whatever_language() {
        for question in QUESTIONS {
            let keys: BTreeSet<_> = question.options.iter().map(|option| option.key).collect();
            assert_eq!(keys.len(), question.options.len(), "{}", question.key);
            for language in Language::ALL {
                assert!(!question.label(language).is_empty());
                for (text, option) in question.options(language).iter().zip(question.options) {
                    assert_eq!(find_option(question.key, text), Some(option.key), "{text}");
                }
            }
        }
        assert_eq!(find_option("kyc-amld5-which-industry", "Mining"), None);
        assert_eq!(find_option("kyc-amld5-favourite-colour", "Other"), None);
    }

    #[test]
    fn a_page_asks_in_its_own_language() {
        let texts = |language| {
            QUESTIONS.iter().flat_map(move |question| {
                let options = question.page_options(language).into_iter().map(|option| option.1);
                [question.page_label(language)].into_iter().chain(options)
            })
        };
        // Amounts are the same everywhere, and so may a loanword be.
        let worded = |text: &str| !text.contains('€') && text != "Student";
        for language in language::Language::ALL {
            let english = texts(language::Language::English);
            let same = texts(language).zip(english).filter(|(text, english)| text == english);
            let same = same.filter(|(text, _)| worded(text)).count();
            assert_eq!(same > 0, language == language::Language::English, "{language:?}");
        }
    }

    #[test]
    fn only_an_option_answers_a_question() {
        let mut answers: BTreeMap<_, _> = unanswered(false, &BTreeMap::new())
            .map(|question| (question.key.to_owned(), question.options[0].key.to_owned()))
            .collect();
        assert_eq!(unanswered(false, &answers).count(), 0);
        answers.insert("kyc-amld5-which-industry".to_owned(), "Other".to_owned());
        let left: Vec<_> = unanswered(false, &answers).map(|question| question.key).collect();
        assert_eq!(left, ["kyc-amld5-which-industry"]);
    }
}
