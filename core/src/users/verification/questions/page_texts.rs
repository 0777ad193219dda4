//! Texts of the questions in the languages that our pages have and the API document has not.

use crate::http::language::Language;

/// Texts in pt, it and pl.
type Texts = [&'static str; 3];

/// The text of a question, or of an option of it; `None` for a language of the API document, and for
/// an option that is the same in every language.
pub(super) fn find(
    language: Language,
    question: &str,
    option: Option<&str>,
) -> Option<&'static str> {
    let column = match language {
        Language::Portuguese => 0,
        Language::Italian => 1,
        Language::Polish => 2,
        Language::English
        | Language::Dutch
        | Language::German
        | Language::French
        | Language::Spanish => return None,
    };
    let (_, label, options) = TEXTS.iter().find(|(key, ..)| *key == question)?;
    let texts = match option {
        None => label,
        Some(option) => &options.iter().find(|(key, _)| *key == option)?.1,
    };
    texts.get(column).copied()
}

/// Options of a question with their labels.
type Options = &'static [(&'static str, Texts)];

/// Questions with their labels, and their options.
const TEXTS: &[(&str, Texts, Options)] = &[
    (
        "kyc-amld5-annual-net-income",
        [
            "Qual é o seu rendimento líquido anual?",
            "Qual è il tuo reddito netto annuo?",
            "Jaki jest Twój roczny dochód netto?",
        ],
        &[],
    ),
    (
        "kyc-amld5-annual-net-profit",
        [
            "Qual é o lucro líquido anual da empresa?",
            "Qual è l’utile netto annuo dell’impresa?",
            "Jaki jest roczny zysk netto firmy?",
        ],
        &[],
    ),
    (
        "kyc-amld5-employment-status",
        [
            "Qual é a sua situação profissional?",
            "Qual è la tua situazione lavorativa?",
            "Jaka jest Twoja sytuacja zawodowa?",
        ],
        &[
            ("employed", ["Trabalhador por conta de outrem", "Dipendente", "Praca na etacie"]),
            ("self-employed", ["Trabalhador independente", "Autonomo", "Własna działalność"]),
            ("student", ["Estudante", "Studente", "Nauka lub studia"]),
            ("retired", ["Reformado", "Pensionato", "Emerytura"]),
            ("unemployed", ["Desempregado", "Disoccupato", "Brak pracy"]),
        ],
    ),
    (
        "kyc-amld5-main-source-income",
        [
            "Qual é a principal fonte de rendimento?",
            "Qual è la principale fonte di reddito?",
            "Jakie jest główne źródło dochodu?",
        ],
        &[
            ("salary", ["Salário", "Stipendio", "Wynagrodzenie"]),
            ("business", ["Lucros de empresa", "Utili d’impresa", "Zysk z działalności"]),
            ("investments", ["Investimentos", "Investimenti", "Inwestycje"]),
            (
                "benefits",
                ["Pensão ou subsídios", "Pensione o sussidi", "Emerytura, renta lub zasiłek"],
            ),
            (
                "gift-or-inheritance",
                ["Doação ou herança", "Donazione o eredità", "Darowizna lub spadek"],
            ),
        ],
    ),
    (
        "kyc-amld5-why-account-created",
        [
            "Porque foi criada esta conta?",
            "Perché è stato creato questo conto?",
            "W jakim celu założono to konto?",
        ],
        &[
            (
                "investing",
                [
                    "Investimento a longo prazo",
                    "Investimento a lungo termine",
                    "Inwestowanie długoterminowe",
                ],
            ),
            ("trading", ["Negociação", "Compravendita", "Handel"]),
            ("payments", ["Efetuar pagamentos", "Effettuare pagamenti", "Dokonywanie płatności"]),
            ("curiosity", ["Experimentar o serviço", "Provare il servizio", "Wypróbowanie usługi"]),
        ],
    ),
    (
        "kyc-amld5-which-industry",
        ["Em que setor trabalha?", "In quale settore lavori?", "W jakiej branży pracujesz?"],
        &[
            ("finance", ["Serviços financeiros", "Servizi finanziari", "Usługi finansowe"]),
            ("technology", ["Tecnologia e TI", "Tecnologia e informatica", "Technologia i IT"]),
            ("trade", ["Comércio e hotelaria", "Commercio e ristorazione", "Handel i gastronomia"]),
            (
                "industry",
                ["Indústria e construção", "Industria ed edilizia", "Przemysł i budownictwo"],
            ),
            (
                "public",
                [
                    "Administração, saúde e educação",
                    "Pubblica amministrazione, sanità e istruzione",
                    "Administracja, zdrowie i edukacja",
                ],
            ),
            ("other", ["Outro", "Altro", "Inna"]),
        ],
    ),
];
